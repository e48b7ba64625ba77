#pragma once

#include "strata/base/view.h"
#include "strata/kernels/ops/op.h"

namespace strata::kernels {

// Both throw; kUnsupported names the op and the device that cannot do it, kInternal the op.
[[noreturn]] void throw_unsupported(const device::Stream& stream, const char* op);
void require_scratch(const char* op, Bytes wanted, const View<std::byte>& scratch);

// The bytes that run wants as args.scratch. Asked while memory is laid out: with the largest
// shapes, pointers left null. Errors: kUnsupported, kInternal as run.
template <class Args>
Bytes scratch_bytes(const device::Stream& stream, const Op<Args>& op, const Args& args) {
  check(args);
  if (!supports(op, args)) throw_unsupported(stream, Args::kName);
  return op.scratch_bytes(stream, args);
}

// The way to an op: checks what its contract says, then queues it.
// Errors: kUnsupported if this backend cannot do it; kInternal if an argument does not fit the
//   others, or the scratch is too small or not aligned; those of Stream::run.
template <class Args>
void run(device::Stream& stream, const Op<Args>& op, const Args& args) {
  [[maybe_unused]] const Bytes scratch = scratch_bytes(stream, op, args);
  if constexpr (requires { args.scratch; }) require_scratch(Args::kName, scratch, args.scratch);
  op.run(stream, args);
}

}  // namespace strata::kernels
