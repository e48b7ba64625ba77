#pragma once

#include <cstdint>

#ifdef STRATA_HIP
#include <hip/hip_runtime.h>
#endif

// What kernels of cards share: the canonical scalar functions, and the sums in 32 lanes of
// docs/numerics.md, each lane a thread. Of a wave of 64 each half is 32 lanes of its own.
namespace strata::kernels::gpu {

#define STRATA_FN [[maybe_unused]] static __device__ __forceinline__
#define STRATA_MEMBER __device__ __forceinline__
// NOLINTNEXTLINE(bugprone-suspicious-include)
#include "strata/kernels/canonical_math.inl"

constexpr int kLanes = 32;

STRATA_FN int lane_id() { return static_cast<int>(threadIdx.x) % kLanes; }
STRATA_FN int warp_id() { return static_cast<int>(threadIdx.x) / kLanes; }

template <class V>
STRATA_FN V from_lane_xor(V v, int mask) {
#ifdef STRATA_HIP
  return __shfl_xor(v, mask, kLanes);
#else
  return __shfl_xor_sync(~0U, v, mask);
#endif
}
template <class V>
STRATA_FN V from_lane(V v, int lane) {
#ifdef STRATA_HIP
  return __shfl(v, lane, kLanes);
#else
  return __shfl_sync(~0U, v, lane);
#endif
}
STRATA_FN void sync_lanes() {
#ifndef STRATA_HIP  // the lanes of a wave run together
  __syncwarp();
#endif
}

// Which of the 32 lanes say so, and the lanes below `lane`; of 32 or more all.
STRATA_FN uint32_t lanes_where(bool so) {
#ifdef STRATA_HIP
  const uint64_t wave = __ballot(so);
  return static_cast<uint32_t>(wave >> (__lane_id() & 32));
#else
  return __ballot_sync(~0U, so);
#endif
}
STRATA_FN uint32_t lanes_before(int lane) { return lane >= kLanes ? ~0U : (1U << lane) - 1U; }

// The tree of 32 lanes; every lane gets the sum, since a + b = b + a.
STRATA_FN float lane_tree(float v) {
  for (int width = kLanes / 2; width > 0; width /= 2) v = v + from_lane_xor(v, width);
  return v;
}
template <class V>
STRATA_FN V lane_add(V v) {
  for (int width = kLanes / 2; width > 0; width /= 2) v += from_lane_xor(v, width);
  return v;
}
STRATA_FN float lane_max(float v) {
  for (int width = kLanes / 2; width > 0; width /= 2) {
    const float other = from_lane_xor(v, width);
    v = other > v ? other : v;
  }
  return v;
}

// dot_c and inverse_rms_c by one warp. a and b give element i.
template <class A, class B>
STRATA_FN float lane_dot(const A& a, const B& b, int64_t n) {
  float acc = 0;
#pragma unroll 8
  for (int64_t i = lane_id(); i < n; i += kLanes) acc = __builtin_fmaf(a(i), b(i), acc);
  return lane_tree(acc);
}
STRATA_FN float lane_inverse_rms(const float* x, int64_t n, float eps) {
  const auto at = [x](int64_t i) { return x[i]; };
  return 1.0f / __builtin_sqrtf(lane_dot(at, at, n) / static_cast<float>(n) + eps);
}

STRATA_FN float load_half(uint16_t bits) {
#ifdef STRATA_HIP
  _Float16 h;
  __builtin_memcpy(&h, &bits, 2);
  return static_cast<float>(h);
#else
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(bits));
  return f;
#endif
}
STRATA_FN uint16_t store_half(float f) {
#ifdef STRATA_HIP
  const _Float16 h = static_cast<_Float16>(f);
  uint16_t bits;
  __builtin_memcpy(&bits, &h, 2);
  return bits;
#else
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(f));
  return bits;
#endif
}

}  // namespace strata::kernels::gpu
