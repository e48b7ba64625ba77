#pragma once

#include <cstddef>

#include "strata/base/ids.h"
#include "strata/device/stream.h"

namespace strata::kernels {

// One operation of one backend. run queues the work on the stream and returns: it never allocates,
// never waits and never reads a device value on the host. scratch says how many bytes run wants as
// args.scratch (256-byte aligned); the plan asks it with the largest shapes, pointers left null.
template <class Args>
struct Op {
  void (*run)(device::Stream&, const Args&) = nullptr;  // null: this backend cannot do it
  Bytes (*scratch)(const device::Stream&, const Args&) = nullptr;  // null: none needed
  explicit operator bool() const { return run != nullptr; }
  Bytes scratch_bytes(const device::Stream& stream, const Args& args) const {
    return scratch ? scratch(stream, args) : 0;
  }
};

}  // namespace strata::kernels
