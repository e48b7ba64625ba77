#include "strata/base/carver.h"
#include "strata/kernels/gpu/chain.cuh"
#include "strata/kernels/gpu/gpu.h"
#include "strata/kernels/gpu/lanes.cuh"
#include "strata/kernels/gpu/launch.h"
#include "strata/kernels/gpu/select.cuh"

// The choice of ref/sample.cpp by one block of threads a row, with the same bits of every number
// that a comparison looks at.
namespace strata::kernels::gpu {
namespace {

constexpr int kThreads = kSelectThreads;
constexpr int kPiece = 1024;  // candidates that are sorted at once
constexpr float kMinusInfinity = -__builtin_huge_valf();
constexpr float kInfinity = __builtin_huge_valf();
// Everything above minus infinity, whose key this is.
STRATA_FN Cut above_lowest() { return {0x007FFFFFU, 0}; }
constexpr float kCold = 1e-6f;  // as ref/sample.cpp

struct Best {
  float value;
  int32_t id;
};
// The larger value, of equals the lower id; no candidate is -1, with the lowest value.
STRATA_FN bool beats(const Best& a, const Best& b) {
  return a.value > b.value || (a.value == b.value && a.id >= 0 && (b.id < 0 || a.id < b.id));
}

struct Shared {
  SelectShared select;
  Best best[kSelectWarps];
  float logit[kPiece];
  int32_t id[kPiece];
  float total;
  int n_kept;
  bool ends;
};

__device__ Best block_best(Best b, Shared& shared) {
  for (int width = kLanes / 2; width > 0; width /= 2) {
    const Best other{from_lane_xor(b.value, width), from_lane_xor(b.id, width)};
    if (beats(other, b)) b = other;
  }
  __syncthreads();
  if (lane_id() == 0) shared.best[warp_id()] = b;
  __syncthreads();
  for (const Best& other : shared.best) {
    if (beats(other, b)) b = other;
  }
  return b;
}

__device__ void apply_penalties(const SampleRows& a, const SampleParams& p, float* x) {
  // A token may have several biases: one thread, in their order.
  if (threadIdx.x == 0) {
    for (int32_t i = p.first_bias; i < p.first_bias + p.n_bias; ++i) {
      x[a.biases[i].id] = x[a.biases[i].id] + a.biases[i].bias;
    }
  }
  __syncthreads();
  for (int32_t i = p.first_count + threadIdx.x; i < p.first_count + p.n_counts; i += kThreads) {
    const TokenCount count = a.counts[i];
    float v = x[count.id];
    if (count.repeated != 0) v = v > 0 ? v / p.repetition : v * p.repetition;
    if (count.n > 0) v = v - p.presence - p.frequency * static_cast<float>(count.n);
    x[count.id] = v;
  }
  __syncthreads();
}

// Sorts the first n of the piece by falling logit, of equals the lower id first.
__device__ void sort_piece(Shared& shared, int n) {
  for (int i = n + threadIdx.x; i < kPiece; i += kThreads) {
    shared.logit[i] = kMinusInfinity;
    shared.id[i] = INT32_MAX;
  }
  __syncthreads();
  for (int size = 2; size <= kPiece; size *= 2) {
    for (int stride = size / 2; stride > 0; stride /= 2) {
      for (int i = threadIdx.x; i < kPiece; i += kThreads) {
        const int j = i ^ stride;
        if (j < i) continue;
        const bool falling = (i & size) == 0;
        const Best a{shared.logit[i], shared.id[i]}, b{shared.logit[j], shared.id[j]};
        if (beats(b, a) == falling) {
          shared.logit[i] = b.value, shared.id[i] = b.id;
          shared.logit[j] = a.value, shared.id[j] = a.id;
        }
      }
      __syncthreads();
    }
  }
}

// Of n candidates `order` (ascending ids) the last one, in falling order, that the probabilities
// keep.
// The best ones are sorted a piece at a time, as many as it takes.
__device__ Best last_kept(const SampleParams& p, const float* x, float best, const int32_t* order,
                          int n, Shared& shared) {
  if (warp_id() == 0) {
    float sum = 0;
    for (int i = lane_id(); i < n; i += kLanes) sum = sum + exp_c(x[order[i]] - best);
    sum = lane_tree(sum);
    if (lane_id() == 0) shared.total = sum;
  }
  __syncthreads();
  const float enough = p.top_p * shared.total;
  Best last{kInfinity, -1};
  float cumulative = 0;
  int kept = 0;
  while (kept < n) {
    // Candidates behind the last one, in order of ids.
    const auto left = [&](int i) {
      const Best candidate{x[order[i]], order[i]};
      return last.id < 0 || beats(last, candidate) ? candidate.value : kMinusInfinity;
    };
    const int n_left = n - kept, n_piece = n_left < kPiece ? n_left : kPiece;
    // What is not left has the lowest key of all.
    Cut cut = above_lowest();
    if (n_left > n_piece) cut = cut_of_best(left, n, n_piece, shared.select);
    take_best(left, n, cut, shared.select, [&](int at, int i) {
      shared.logit[at] = x[order[i]];
      shared.id[at] = order[i];
    });
    __syncthreads();
    sort_piece(shared, n_piece);
    if (threadIdx.x == 0) {
      int i = 0;
      shared.ends = false;
      for (; i < n_piece; ++i) {
        const float share = exp_c(shared.logit[i] - best);
        if (kept + i > 0 && (cumulative >= enough || share < p.min_p)) {
          shared.ends = true;
          break;
        }
        cumulative = cumulative + share;
      }
      shared.n_kept = i;
    }
    __syncthreads();
    const int n_more = shared.n_kept;
    if (n_more > 0) last = {shared.logit[n_more - 1], shared.id[n_more - 1]};
    kept += n_more;
    const bool ends = shared.ends;
    __syncthreads();
    if (ends) break;
  }
  return last;
}

// A token, or -1. x is overwritten.
__device__ int32_t choose(const SampleRows& a, const SampleParams& p, float* x, int n,
                          int32_t* order, Shared& shared) {
  apply_penalties(a, p, x);
  if (p.mask >= 0) {
    const uint64_t* words = a.masks.row(p.mask);
    for (int i = threadIdx.x; i < n; i += kThreads) {
      if ((words[i / 64] >> (i % 64) & 1) == 0) x[i] = kMinusInfinity;
    }
    __syncthreads();
  }
  Best top{kMinusInfinity, -1};
  for (int i = threadIdx.x; i < n; i += kThreads) {
    if (x[i] > top.value) top = {x[i], i};
  }
  top = block_best(top, shared);
  if (top.id < 0 || !(top.value < kInfinity)) return -1;
  if (!(p.temperature > kCold)) return top.id;

  const float inverse = 1.0f / p.temperature;
  for (int i = threadIdx.x; i < n; i += kThreads) {
    x[i] = x[i] == x[i] ? x[i] * inverse : kMinusInfinity;
  }
  __syncthreads();
  const float best = x[top.id];

  // Candidates in order of ids; the probabilities move the last one that may be chosen.
  const bool by_probability = p.top_p < 1 || p.min_p > 0;
  const bool filtered = p.top_k > 0 || by_probability;
  Best last{kMinusInfinity, INT32_MAX};
  int n_candidates = n;
  if (filtered) {
    const auto score = [x](int i) { return x[i]; };
    const auto keep = [order](int at, int i) { order[at] = i; };
    n_candidates = take_best(score, n, above_lowest(), shared.select, keep);
    __syncthreads();
    if (p.top_k > 0 && p.top_k < n_candidates) {
      const Cut cut = cut_of_best(score, n, p.top_k, shared.select);
      n_candidates = take_best(score, n, cut, shared.select, keep);
      __syncthreads();
    }
    if (by_probability) last = last_kept(p, x, best, order, n_candidates, shared);
  }
  Best chosen{kMinusInfinity, -1};
  for (int i = threadIdx.x; i < n_candidates; i += kThreads) {
    const int32_t id = filtered ? order[i] : i;
    if (by_probability && beats(last, {x[id], id})) continue;
    const float noise =
        gumbel_c(p.seed, static_cast<uint64_t>(p.position), static_cast<uint32_t>(id));
    const Best noisy{x[id] + noise, id};
    if (noisy.value > kMinusInfinity && beats(noisy, chosen)) chosen = noisy;
  }
  return block_best(chosen, shared).id;
}

// Of the logits as they came.
__device__ void write_logprobs(int n_top, const float* raw, int n, int32_t chosen, Shared& shared,
                               RowLogprobs& out) {
  const auto score = [raw](int i) { return raw[i] == raw[i] ? raw[i] : kMinusInfinity; };
  Best best{kMinusInfinity, -1};
  int n_sound = 0;
  for (int i = threadIdx.x; i < n; i += kThreads) {
    if (raw[i] == raw[i]) ++n_sound;
    if (raw[i] > best.value) best = {raw[i], i};
  }
  best = block_best(best, shared);
  if (threadIdx.x == 0) shared.n_kept = 0;
  __syncthreads();
  atomicAdd(&shared.n_kept, n_sound);
  __syncthreads();
  const int most = n_top < RowLogprobs::kMaxTop ? n_top : RowLogprobs::kMaxTop;
  const int n_out = shared.n_kept < most ? shared.n_kept : most;
  if (n_out > 0) {
    Cut cut = above_lowest();
    if (n_out < shared.n_kept) cut = cut_of_best(score, n, n_out, shared.select);
    take_best(score, n, cut, shared.select, [&](int at, int i) {
      shared.logit[at] = raw[i];
      shared.id[at] = i;
    });
    __syncthreads();
    sort_piece(shared, n_out);
  }
  if (warp_id() == 0) {
    float sum = 0;
    for (int i = lane_id(); i < n; i += kLanes) {
      sum = sum + (raw[i] == raw[i] ? exp_c(raw[i] - best.value) : 0.0f);
    }
    sum = lane_tree(sum);
    if (lane_id() == 0) shared.total = log_c(sum);
  }
  __syncthreads();
  const auto logprob = [&](float logit) {
    const float v = logit - best.value - shared.total;
    return v < 0.0f ? v : 0.0f;
  };
  for (int i = threadIdx.x; i < n_out; i += kThreads) {
    out.id[i] = shared.id[i];
    out.logprob[i] = logprob(shared.logit[i]);
  }
  if (threadIdx.x == 0) {
    out.n_top = n_out;
    out.chosen = logprob(raw[chosen]);
  }
}

struct Scratch {
  int32_t* order;  // [rows, vocab] candidates
  float* raw;      // [rows, vocab] logits as they came, if there are log probabilities
};
Scratch carve(const SampleRows& a, Carver& carver) {
  const int64_t n = a.logits.extent(0) * a.logits.extent(1);
  return {carver.take<int32_t>(n), carver.take<float>(a.logprobs.extent(0) > 0 ? n : 0)};
}

__global__ void __launch_bounds__(kThreads) sample_kernel(SampleRows a, Scratch scratch) {
  chained();
  __shared__ Shared shared;
  const int row = blockIdx.x;
  if (row >= *a.n_rows) return;
  const SampleParams p = a.params[row];
  const int n = static_cast<int>(a.logits.extent(1));
  float* const x = a.logits.row(row);
  float* const raw = scratch.raw + int64_t{row} * n;
  if (p.n_top >= 0) {
    for (int i = threadIdx.x; i < n; i += kThreads) raw[i] = x[i];
    __syncthreads();
  }
  const int32_t chosen = choose(a, p, x, n, scratch.order + int64_t{row} * n, shared);
  if (threadIdx.x == 0) a.chosen[row] = chosen;
  if (p.n_top >= 0 && chosen >= 0) {
    __syncthreads();
    write_logprobs(p.n_top, raw, n, chosen, shared, a.logprobs[row]);
  }
}

}  // namespace

Bytes sample_rows_scratch(const device::Stream&, const SampleRows& a) {
  Carver carver(nullptr);
  carve(a, carver);
  return carver.peak();
}

void sample_rows(const SampleRows& a, NativeStream s) {
  Carver carver(a.scratch.data());
  const Scratch scratch = carve(a, carver);
  launch_chained(sample_kernel, static_cast<unsigned>(a.logits.extent(0)), kThreads, 0, s, a,
                 scratch);
}

}  // namespace strata::kernels::gpu
