#pragma once

#include "strata/kernels/ops/cost.h"

// How a backend that computes on the host fills its table: a body becomes an op.
namespace strata::kernels {

// kBody: void(const Args&) or void(const Args&, ThreadPool&).
template <class Args, auto kBody>
void enqueue(device::Stream& stream, const Args& args) {
  if constexpr (std::is_invocable_v<decltype(kBody), const Args&, ThreadPool&>) {
    stream.run(cost_of(args), [args](ThreadPool& pool) { kBody(args, pool); });
  } else {
    stream.run(cost_of(args), [args] { kBody(args); });
  }
}

template <class Args, auto kBody>
constexpr Op<Args> op(bool (*takes)(const Args&) = nullptr) {
  return {.run = &enqueue<Args, kBody>, .takes = takes};
}
template <class Args, auto kBody, auto kScratch>
constexpr Op<Args> op(bool (*takes)(const Args&) = nullptr) {
  return {.run = &enqueue<Args, kBody>, .scratch = kScratch, .takes = takes};
}

}  // namespace strata::kernels
