#pragma once

#include "strata/kernels/gpu/lanes.cuh"
#include "strata/kernels/gpu/products.h"

// Activations as products take them: rule 1 of quant/canonical.h, by a warp 256 values at a time.
namespace strata::kernels::gpu {

constexpr int kPiece = 256, kEach = kPiece / kLanes;  // values of a warp, of a lane

// Called, not inlined eight times: kernels of a few microseconds wait for their own code, too.
[[maybe_unused]] static __device__ __noinline__ float silu_of(float x) { return silu_c(x); }

// Value i of the rows of activations.
STRATA_FN float activation(const ActivationSource& a, int64_t i) {
  switch (a.from) {
    case ActivationSource::From::kPlain:
      return a.x[i];
    case ActivationSource::From::kSilu:
      return silu_of(a.x[i] * a.factor);
    case ActivationSource::From::kSwiGlu:
      return silu_of(a.x[i]) * a.y[i];
  }
  return 0;
}

// The eight from `first` on.
STRATA_FN void load_eight(const ActivationSource& a, int64_t first, float (&x)[kEach]) {
  const bool wide = reinterpret_cast<uintptr_t>(a.x + first) % 16 == 0;
  if (a.from == ActivationSource::From::kPlain && wide) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float4 four = reinterpret_cast<const float4*>(a.x + first)[i];
      x[4 * i] = four.x, x[4 * i + 1] = four.y, x[4 * i + 2] = four.z, x[4 * i + 3] = four.w;
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) x[i] = activation(a, first + i);
}

// What a lane's eight values become: codes, the scale of their block, and the sum of the codes of
// 16 values, which two lanes share.
struct QuantEight {
  uint2 words;
  float scale;
  int sum;
};
// All lanes of the warp call it; a lane beyond the row has zeros.
template <int kBlock>
STRATA_FN QuantEight quantise_eight(const float (&x)[kEach]) {
  constexpr int kShare = kBlock / kEach;  // lanes that share a block
  float amax = 0;
  bool finite = true;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const float size = bits_to_float(float_to_bits(x[i]) & 0x7fffffffU);
    finite = finite && size < __builtin_huge_valf();
    amax = size > amax ? size : amax;
  }
  int broken = finite ? 0 : 1;
#pragma unroll
  for (int width = kShare / 2; width > 0; width /= 2) {
    const float other = from_lane_xor(amax, width);
    amax = other > amax ? other : amax;
    broken |= from_lane_xor(broken, width);
  }
  const bool empty = broken != 0 || amax < 0x1p-100f;
  const float inverse = empty ? 0.0f : 127.0f / amax;
  uint32_t words[2] = {0, 0};
  int sum = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const float rounded = empty ? 0.0f : __builtin_rintf(x[i] * inverse);
    const float held = rounded < -127.0f ? -127.0f : (rounded > 127.0f ? 127.0f : rounded);
    const int q = static_cast<int>(held);
    sum += q;
    words[i / 4] |= (static_cast<uint32_t>(q) & 255U) << (8 * (i % 4));
  }
  sum += from_lane_xor(sum, 1);
  const float scale =
      broken != 0 ? bits_to_float(0x7FC00000U) : (amax < 0x1p-100f ? 0.0f : amax / 127.0f);
  return {uint2{words[0], words[1]}, scale, sum};
}

// Keeps them as values [first, first + 8) of all rows of `out`.
template <int kBlock>
STRATA_FN void keep_eight(const QuantEight& eight, int64_t first, const QuantRows& out) {
  *reinterpret_cast<uint2*>(out.q + first) = eight.words;
  if (lane_id() % 2 == 0) out.sums[first / 16] = static_cast<int16_t>(eight.sum);
  if (lane_id() % (kBlock / kEach) == 0) out.scale[first / kBlock] = eight.scale;
}

}  // namespace strata::kernels::gpu
