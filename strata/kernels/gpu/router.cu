#include "strata/kernels/gpu/chain.cuh"
#include "strata/kernels/gpu/gpu.h"
#include "strata/kernels/gpu/lanes.cuh"
#include "strata/kernels/gpu/launch.h"

namespace strata::kernels::gpu {
namespace {

constexpr int64_t kMostExperts = 8192;  // as the probabilities of a row lie in shared memory

// A warp a row. What is taken is marked below every probability, a broken one included.
constexpr float kBroken = -1.0f, kTaken = -2.0f;

__global__ void router_topk_kernel(RouterTopk a) {
  chained();
  extern __shared__ float p[];
  const int row = blockIdx.x, n = static_cast<int>(a.logits.extent(1));
  if (row >= *a.n_rows) return;
  const float* x = a.logits.row(row);
  // As one walk from x[0] on: a broken first logit stays the largest, broken others are passed.
  float best = x[0];
  for (int i = lane_id(); i < n; i += kLanes) best = x[i] > best ? x[i] : best;
  best = x[0] != x[0] ? x[0] : lane_max(best);
  float sum = 0;
  for (int i = lane_id(); i < n; i += kLanes) {
    p[i] = exp_c(x[i] - best);
    sum = sum + p[i];
  }
  sum = lane_tree(sum);
  for (int i = lane_id(); i < n; i += kLanes) {
    const float v = p[i] / sum;
    p[i] = v == v ? v : kBroken;
  }
  sync_lanes();
  // Each lane knows the best of its own; who gives it away looks for the next.
  float own = kTaken;
  int own_at = n;
  const auto look = [&] {
    own = kTaken, own_at = n;
#pragma unroll 4
    for (int i = lane_id(); i < n; i += kLanes) {
      if (p[i] > own) own = p[i], own_at = i;
    }
  };
  look();
  float total = 0;
  for (int j = 0; j < a.top_k; ++j) {
    float top = own;
    int at = own_at;
    for (int width = kLanes / 2; width > 0; width /= 2) {
      const float other = from_lane_xor(top, width);
      const int other_at = from_lane_xor(at, width);
      if (other > top || (other == top && other_at < at)) top = other, at = other_at;
    }
    total = total + top;
    if (own_at != at) continue;
    p[at] = kTaken;
    a.id.row(row)[j] = at;
    a.weight.row(row)[j] = top;
    look();
  }
  sync_lanes();
  for (int j = lane_id(); j < a.top_k; j += kLanes) {
    a.weight.row(row)[j] = a.weight.row(row)[j] / total;
  }
}

}  // namespace

bool router_topk_takes(const RouterTopk& a) { return a.logits.extent(1) <= kMostExperts; }

void router_topk(const RouterTopk& a, NativeStream s) {
  const size_t shared = static_cast<size_t>(a.logits.extent(1)) * sizeof(float);
  launch_chained(router_topk_kernel, static_cast<unsigned>(a.logits.extent(0)), kLanes, shared, s,
                 a);
}

}  // namespace strata::kernels::gpu
