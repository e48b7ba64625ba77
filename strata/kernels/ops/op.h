#pragma once

#include <cstddef>

#include "strata/base/ids.h"
#include "strata/device/stream.h"

namespace strata::kernels {

// One operation of one backend. Called through kernels::run (ops/run.h), which checks the
// arguments. run queues the work on the stream and returns: it never allocates, never waits and
// never reads a device value on the host. scratch says how many bytes run wants as args.scratch
// (256-byte aligned); the plan asks it with the largest shapes, pointers left null.
//
// Args, a plain struct, comes with a name kName and with a function check(const Args&), which
// throws kInternal where sizes, alignment or overlap break what the struct's comment says.
template <class Args>
struct Op {
  void (*run)(device::Stream&, const Args&) = nullptr;  // null: this backend cannot do it
  Bytes (*scratch)(const device::Stream&, const Args&) = nullptr;  // null: none needed
  bool (*takes)(const Args&) = nullptr;  // limits of this backend; null: whatever check allows
  explicit operator bool() const { return run != nullptr; }
  Bytes scratch_bytes(const device::Stream& stream, const Args& args) const {
    return scratch ? scratch(stream, args) : 0;
  }
};

// Whether the backend of this op can do it with arguments of these shapes; pointers may be null.
// The planner asks before it places anything.
template <class Args>
bool supports(const Op<Args>& op, const Args& args) {
  return op.run != nullptr && (op.takes == nullptr || op.takes(args));
}

}  // namespace strata::kernels
