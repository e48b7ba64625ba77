#pragma once

#include <cstdint>

#include "strata/device/gpu/gpu_stream.h"
#include "strata/kernels/ops/cost.h"

// How the backend of cards fills its table: a body that launches kernels on the runtime's stream
// becomes an op. Bodies only queue, so the arguments need not outlive the call.
namespace strata::kernels::gpu {

using NativeStream = device::gpu::NativeStream;

template <class Args, auto kBody>
void enqueue(device::Stream& stream, const Args& args) {
  const Args* const at = &args;
  const NativeStream native = device::gpu::native(stream);
  stream.run(cost_of(args), [at, native] { kBody(*at, native); });
}

template <class Args, auto kBody>
constexpr Op<Args> op(bool (*takes)(const Args&) = nullptr) {
  return {.run = &enqueue<Args, kBody>, .takes = takes};
}
template <class Args, auto kBody, auto kScratch>
constexpr Op<Args> op(bool (*takes)(const Args&) = nullptr) {
  return {.run = &enqueue<Args, kBody>, .scratch = kScratch, .takes = takes};
}

// Blocks of `size` that hold n, at least one: an empty grid is refused.
constexpr unsigned blocks_for(int64_t n, int64_t size) {
  return n <= 0 ? 1U : static_cast<unsigned>((n + size - 1) / size);
}

}  // namespace strata::kernels::gpu
