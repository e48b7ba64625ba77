#pragma once

#include "strata/base/check.h"
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

// The same, with scratch whose size is checked before anything is written to it.
template <class Args, auto kBody, auto kScratch>
void enqueue_scratch(device::Stream& stream, const Args& args) {
  STRATA_CHECK(kScratch(stream, args) <= static_cast<Bytes>(args.scratch.size()));
  enqueue<Args, kBody>(stream, args);
}

template <class Args, auto kBody>
constexpr Op<Args> op() {
  return {.run = &enqueue<Args, kBody>};
}
template <class Args, auto kBody, auto kScratch>
constexpr Op<Args> op() {
  return {.run = &enqueue_scratch<Args, kBody, kScratch>, .scratch = kScratch};
}

}  // namespace strata::kernels
