#pragma once

#include "strata/kernels/gpu/lanes.cuh"

// The k best of n scores by one block of threads: by falling score, of equals the lower index. No
// score is NaN. A radix search finds the score of the last one that is taken, then one pass over
// the scores in order takes them.
namespace strata::kernels::gpu {

constexpr int kSelectThreads = 256;
constexpr int kSelectWarps = kSelectThreads / kLanes;

struct SelectShared {
  int histogram[256];
  int warp_total[2][kSelectWarps];
  uint32_t prefix;
  int left;
};

// What is taken: keys above `key`, and of those equal to it the first n_equal.
struct Cut {
  uint32_t key;
  int n_equal;
};

// Rises with the float; both zeros are one.
STRATA_FN uint32_t ordered_key(float x) {
  const uint32_t bits = float_to_bits(x == 0.0f ? 0.0f : x);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

// score(i) for i in [0, n); 0 < k < n. All threads of the block call it and get the same.
template <class Score>
STRATA_FN Cut cut_of_best(const Score& score, int n, int k, SelectShared& shared) {
  if (threadIdx.x == 0) shared.prefix = 0, shared.left = k;
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (int i = threadIdx.x; i < 256; i += blockDim.x) shared.histogram[i] = 0;
    __syncthreads();
    const uint32_t prefix = shared.prefix;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
      const uint32_t key = ordered_key(score(i));
      // Of 32 bits no shift by 32: the first pass has no prefix.
      const bool matches = shift == 24 || (key >> (shift + 8)) == (prefix >> (shift + 8));
      if (matches) atomicAdd(&shared.histogram[(key >> shift) & 255U], 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int left = shared.left, digit = 255;
      while (shared.histogram[digit] < left) left -= shared.histogram[digit--];
      shared.left = left;
      shared.prefix = prefix | static_cast<uint32_t>(digit) << shift;
    }
    __syncthreads();
  }
  return {shared.prefix, shared.left};
}

// Calls take(position, i) for each that is taken, positions ascending with i. Returns how many.
template <class Score, class Take>
STRATA_FN int take_best(const Score& score, int n, const Cut& cut, SelectShared& shared,
                        const Take& take) {
  int taken = 0, equals = 0;
  const uint32_t before = (1U << lane_id()) - 1U;
  // The number of threads before this one where a flag holds, and of all.
  const auto rank = [&](bool flag, int which, int& total) {
    const uint32_t here = lanes_where(flag);
    __syncthreads();
    if (lane_id() == 0) shared.warp_total[which][warp_id()] = __popc(here);
    __syncthreads();
    int first = 0;
    total = 0;
    for (int w = 0; w < static_cast<int>(blockDim.x) / kLanes; ++w) {
      if (w < warp_id()) first += shared.warp_total[which][w];
      total += shared.warp_total[which][w];
    }
    return first + __popc(here & before);
  };
  for (int base = 0; base < n; base += blockDim.x) {
    const int i = base + threadIdx.x;
    const uint32_t key = i < n ? ordered_key(score(i)) : 0;
    const bool equal = i < n && key == cut.key;
    int n_equal = 0, n_taken = 0;
    const int place = rank(equal, 0, n_equal);
    const bool takes = i < n && (key > cut.key || (equal && equals + place < cut.n_equal));
    const int at = rank(takes, 1, n_taken);
    if (takes) take(taken + at, i);
    equals += n_equal;
    taken += n_taken;
  }
  return taken;
}

}  // namespace strata::kernels::gpu
