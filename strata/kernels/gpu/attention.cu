#include "strata/base/carver.h"
#include "strata/kernels/gpu/attend.cuh"
#include "strata/kernels/gpu/chain.cuh"
#include "strata/kernels/gpu/gpu.h"
#include "strata/kernels/gpu/lanes.cuh"
#include "strata/kernels/gpu/launch.h"
#include "strata/kernels/gpu/select.cuh"
#include "strata/kernels/gpu/sequences.cuh"

namespace strata::kernels::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = 4;

STRATA_FN void store(CacheType type, std::byte* at, int64_t i, float value) {
  if (type == CacheType::kF32) {
    reinterpret_cast<float*>(at)[i] = value;
  } else {
    reinterpret_cast<uint16_t*>(at)[i] = store_half(value);
  }
}
__global__ void kv_append_kernel(KvAppend a) {
  chained();
  const KvPool& p = a.pool;
  const int row = blockIdx.y, both = p.dk + p.dv;
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= *a.rows.n_rows || i >= p.kv_heads * both) return;
  const int h = i / both, at = i % both, slot = a.rows.slot[row], index = a.rows.index[row];
  if (at < p.dk) {
    store(p.type, p.k + p.cell(a.rows, slot, index, h, p.dk), at, a.k.row(row)[h * p.dk + at]);
  } else {
    const int j = at - p.dk;
    store(p.type, p.v + p.cell(a.rows, slot, index, h, p.dv), j, a.v.row(row)[h * p.dv + j]);
  }
}

// A warp a cell: it needs the largest value before the first code.
__global__ void kv_append_codes_kernel(KvAppend a) {
  chained();
  const KvPool& p = a.pool;
  const int row = blockIdx.y, cell = static_cast<int>(blockIdx.x) * kWarps + warp_id();
  if (row >= *a.rows.n_rows || cell >= 2 * p.kv_heads) return;
  const bool is_key = cell < p.kv_heads;
  const int h = is_key ? cell : cell - p.kv_heads, dim = is_key ? p.dk : p.dv;
  const int slot = a.rows.slot[row], index = a.rows.index[row];
  const float* x = (is_key ? a.k : a.v).row(row) + int64_t{h} * dim;
  std::byte* cells = is_key ? p.k : p.v;
  uint32_t most = 0;
  for (int i = lane_id(); i < dim; i += kLanes) {
    const uint32_t bits = magnitude_bits_c(x[i]);
    most = bits > most ? bits : most;
  }
  for (int width = kLanes / 2; width > 0; width /= 2) {
    const uint32_t other = from_lane_xor(most, width);
    most = other > most ? other : most;
  }
  const float factor = code_factor_c(most);
  auto* q = reinterpret_cast<int8_t*>(cells + p.cell(a.rows, slot, index, h, dim));
  for (int i = lane_id(); i < dim; i += kLanes) q[i] = code_c(x[i], factor);
  if (lane_id() == 0) {
    *reinterpret_cast<float*>(cells + p.scale(a.rows, slot, index, h, dim)) = code_scale_c(most);
  }
}

// A warp a row; only those that complete a block have work.
__global__ void pool_keys_kernel(PoolKeys a) {
  chained();
  const int row = static_cast<int>(blockIdx.x) * kWarps + warp_id();
  const int dim = a.pool.index_dim, ratio = a.pool.ratio, depth = ratio - 1;
  if (row >= *a.rows.n_rows) return;
  const int index = a.rows.index[row];
  if ((index + 1) % ratio != 0) return;
  const Place at = place_of(a.rows, row);
  const float* old = a.tail.side(at.slot, a.rows.side[at.slot]);
  const auto mean = [&](int64_t i) {
    float sum = 0;
    for (int j = 0; j < ratio; ++j) {
      const int t = at.t - ratio + 1 + j;
      sum += t >= 0 ? a.raw.row(at.first + t)[i] : old[int64_t{depth + t} * dim + i];
    }
    return sum / static_cast<float>(ratio);
  };
  const float r =
      1.0f / __builtin_sqrtf(lane_dot(mean, mean, dim) / static_cast<float>(dim) + a.eps);
  const float* rope = a.rows.rope_block + int64_t{row} * 2 * a.pairs;
  const CacheType type = a.pool.pooled_type();
  std::byte* const to = a.pool.pooled + a.pool.pooled_cell(a.rows, at.slot, index / ratio);
  for (int i = lane_id(); i < a.pairs; i += kLanes) {
    const float c = rope[i], s = rope[a.pairs + i];
    const float u = mean(i) * r * a.w[i], v = mean(i + a.pairs) * r * a.w[i + a.pairs];
    store(type, to, i, __builtin_fmaf(u, c, -(v * s)));
    store(type, to, i + a.pairs, __builtin_fmaf(v, c, u * s));
  }
  for (int i = 2 * a.pairs + lane_id(); i < dim; i += kLanes) {
    store(type, to, i, mean(i) * r * a.w[i]);
  }
}

// The tails of the raw keys and, of a short window, their log.
__global__ void keep_raw_keys_kernel(PoolKeys a, int max_rows) {
  chained();
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), y = blockIdx.y;
  const int depth = a.pool.ratio - 1;
  if (c >= a.pool.index_dim) return;
  if (y >= max_rows) {
    const int seq = (y - max_rows) / depth;
    if (seq < *a.rows.n_seqs) {
      keep_in_tail(a.rows, a.raw, a.tail, seq, (y - max_rows) % depth, depth, c);
    }
    return;
  }
  if (y >= *a.rows.n_rows) return;
  const Place at = place_of(a.rows, y);
  if (a.tail.logs(at.n)) a.tail.logged(at.slot, at.t)[c] = a.raw.row(y)[c];
}

// ---- selection ----

// Blocks of the grid walk over pieces of kPiece index blocks, row after row.
constexpr int kPiece = 32;
constexpr int kWalkers = 1056;  // 8 for each multiprocessor of a large card

__global__ void qsa_score_kernel(QsaSelect a, float* score, int64_t max_blocks) {
  chained();
  const int dim = a.pool.index_dim;
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(dim));
  const int64_t pieces = (max_blocks + kPiece - 1) / kPiece, items = *a.rows.n_rows * pieces;
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const int row = static_cast<int>(item / pieces);
    const int n = (a.rows.index[row] + 1) / a.pool.ratio;
    if (n <= a.budget) continue;
    const int first = static_cast<int>(item % pieces) * kPiece;
    for (int b = first + warp_id(); b < first + kPiece && b < n; b += kWarps) {
      const CacheType type = a.pool.pooled_type();
      const std::byte* cell = a.pool.pooled + a.pool.pooled_cell(a.rows, a.rows.slot[row], b);
      const auto key = [&](int64_t i) { return load(type, cell, i); };
      float sum = 0;
      for (int h = 0; h < a.heads; ++h) {
        const float* q = a.q.row(row) + int64_t{h} * dim;
        const float dot = lane_dot([q](int64_t i) { return q[i]; }, key, dim);
        sum = sum + (dot < 0 ? 0.0f : dot);
      }
      const float value = sum * scale;
      if (lane_id() == 0) score[row * max_blocks + b] = value != value ? kMinusInfinity : value;
    }
  }
}

__global__ void __launch_bounds__(kSelectThreads)
    qsa_select_kernel(QsaSelect a, const float* score, int64_t max_blocks) {
  chained();
  const int row = blockIdx.x;
  if (row >= *a.rows.n_rows) return;
  const int n = (a.rows.index[row] + 1) / a.pool.ratio;
  if (n <= a.budget) {
    if (threadIdx.x == 0) a.n_blocks[row] = -1;
    return;
  }
  __shared__ SelectShared shared;
  const float* x = score + row * max_blocks;
  int32_t* out = a.blocks.row(row);
  const Cut cut = cut_of_best([x](int i) { return x[i]; }, n, a.budget, shared);
  take_best([x](int i) { return x[i]; }, n, cut, shared, [out](int at, int i) { out[at] = i; });
  if (threadIdx.x == 0) a.n_blocks[row] = a.budget;
}

// ---- attention ----

constexpr int kAttendThreads = 256;
constexpr int kAttenders = 1056;
constexpr int64_t kSharedScores = 8192;  // more lie in the scratch

int64_t attenders(const QsaAttend& a) {
  const int64_t items = a.q.extent(0) * a.heads;
  return items < kAttenders ? items : kAttenders;
}

// A block a head of a row.
__global__ void __launch_bounds__(kAttendThreads)
    qsa_attend_kernel(QsaAttend a, float* scratch, int64_t most) {
  chained();
  extern __shared__ float shared[];
  __shared__ float best_of[kAttendThreads / kLanes], inverse;
  float* const score = scratch != nullptr ? scratch + blockIdx.x * most : shared;
  const KvPool& p = a.pool;
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(p.dk));
  const int items = *a.rows.n_rows * a.heads, group = a.heads / p.kv_heads;
  for (int item = blockIdx.x; item < items; item += gridDim.x) {
    const int row = item / a.heads, h = item % a.heads, kv = h / group, slot = a.rows.slot[row];
    const Selected sel = selected_by(a, row);
    const float* q = a.q.row(row) + int64_t{h} * p.dk;
    float best = kMinusInfinity;
    for (int64_t s = warp_id(); s < sel.n; s += kAttendThreads / kLanes) {
      const int64_t token = token_of(sel, s);
      const std::byte* cell = p.k + p.cell(a.rows, slot, token, kv, p.dk);
      float x = lane_dot([q](int64_t i) { return q[i]; },
                         [&](int64_t i) { return load(p.type, cell, i); }, p.dk) *
                scale;
      if (p.type == CacheType::kI8) x = x * scale_of(p, p.k, a.rows, slot, token, kv, p.dk);
      if (lane_id() == 0) score[s] = x;
      best = x > best ? x : best;
    }
    if (lane_id() == 0) best_of[warp_id()] = best;
    __syncthreads();
    for (float other : best_of) best = other > best ? other : best;
    for (int64_t s = threadIdx.x; s < sel.n; s += kAttendThreads) score[s] = exp_c(score[s] - best);
    __syncthreads();
    if (warp_id() == 0) {
      float sum = 0;
      for (int64_t s = lane_id(); s < sel.n; s += kLanes) sum = sum + score[s];
      sum = lane_tree(sum);
      if (lane_id() == 0) inverse = 1.0f / sum;
    }
    __syncthreads();
    if (p.type == CacheType::kI8) {
      for (int64_t s = threadIdx.x; s < sel.n; s += kAttendThreads) {
        score[s] = score[s] * scale_of(p, p.v, a.rows, slot, token_of(sel, s), kv, p.dv);
      }
      __syncthreads();
    }
    const float* gate = a.gate.row(row) + int64_t{h} * a.gate_stride + a.gate_offset;
    float* out = a.out.row(row) + int64_t{h} * p.dv;
    for (int i = threadIdx.x; i < p.dv; i += kAttendThreads) {
      float sum = 0;
#pragma unroll 8
      for (int64_t s = 0; s < sel.n; ++s) {
        const std::byte* cell = p.v + p.cell(a.rows, slot, token_of(sel, s), kv, p.dv);
        sum = __builtin_fmaf(score[s], load(p.type, cell, i), sum);
      }
      out[i] = sum * inverse * sigmoid_c(gate[i]);
    }
    __syncthreads();
  }
}

float* carve_scores(const QsaAttend& a, Carver& carver) {
  const int64_t most = most_selected(a);
  return most > kSharedScores ? carver.take<float>(attenders(a) * most) : nullptr;
}
int64_t blocks_of_context(const QsaSelect& a) {
  return (a.max_context + a.pool.ratio - 1) / a.pool.ratio;
}

}  // namespace

void kv_append(const KvAppend& a, NativeStream s) {
  const auto n = static_cast<unsigned>(a.k.extent(0));
  if (a.pool.type == CacheType::kI8) {
    const dim3 cells(blocks_for(2 * int64_t{a.pool.kv_heads}, kWarps), n);
    launch_chained(kv_append_codes_kernel, cells, kWarps * kLanes, 0, s, a);
    return;
  }
  const int64_t width = int64_t{a.pool.kv_heads} * (a.pool.dk + a.pool.dv);
  const dim3 grid(blocks_for(width, kThreads), n);
  launch_chained(kv_append_kernel, grid, kThreads, 0, s, a);
}

void pool_keys(const PoolKeys& a, NativeStream s) {
  const int64_t n = a.raw.extent(0);
  launch_chained(pool_keys_kernel, blocks_for(n, kWarps), kWarps * kLanes, 0, s, a);
  if (a.pool.ratio == 1) return;
  const dim3 grid(blocks_for(a.pool.index_dim, kThreads),
                  static_cast<unsigned>(n + int64_t{a.pool.ratio - 1} * a.rows.max_seqs));
  launch_chained(keep_raw_keys_kernel, grid, kThreads, 0, s, a, static_cast<int>(n));
}

Bytes qsa_select_scratch(const device::Stream&, const QsaSelect& a) {
  Carver carver(nullptr);
  carver.take<float>(a.q.extent(0) * blocks_of_context(a));
  return carver.peak();
}
void qsa_select(const QsaSelect& a, NativeStream s) {
  Carver carver(a.scratch.data());
  const int64_t most = blocks_of_context(a), n = a.q.extent(0);
  float* const score = carver.take<float>(n * most);
  launch_chained(qsa_score_kernel, kWalkers, kWarps * kLanes, 0, s, a, score, most);
  launch_chained(qsa_select_kernel, static_cast<unsigned>(n), kSelectThreads, 0, s, a, score, most);
}

Bytes qsa_attend_scratch(const device::Stream&, const QsaAttend& a) {
  Carver carver(nullptr);
  carve_scores(a, carver);
  const Bytes few = attend_few_scratch(a);
  return carver.peak() > few ? carver.peak() : few;
}
void qsa_attend(const QsaAttend& a, NativeStream s) {
  if (attend_few_takes(a, a.q.extent(0))) return attend_few(a, s);
  Carver carver(a.scratch.data());
  float* const scores = carve_scores(a, carver);
  const int64_t most = most_selected(a);
  const size_t shared = scores != nullptr ? 0 : static_cast<size_t>(most) * sizeof(float);
  launch_chained(qsa_attend_kernel, static_cast<unsigned>(attenders(a)), kAttendThreads, shared, s,
                 a, scores, most);
}

}  // namespace strata::kernels::gpu
