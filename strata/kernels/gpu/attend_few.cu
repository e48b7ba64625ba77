#include <algorithm>

#include "strata/base/carver.h"
#include "strata/kernels/gpu/attend.cuh"
#include "strata/kernels/gpu/chain.cuh"
#include "strata/kernels/gpu/few.h"

// Attention of few rows. There is no head for every multiprocessor, so the scores of a head are
// shared by blocks of threads, and then its values, by columns: a column is added up in order of
// the tokens, whose values come through shared memory some chunks ahead.
namespace strata::kernels::gpu {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kLanes;
constexpr int kMostScoreBlocks = 128;   // for a key head of a row
constexpr int64_t kMostTokens = 16384;  // whose weights lie in shared memory
constexpr int kMostPerLane = 8;         // elements of a key
constexpr int kColumns = 32;            // of the values that a block of threads adds up
constexpr int kValueThreads = 128, kChunk = 128, kAhead = 3;  // tokens of a chunk

struct Scores {
  float* score;   // [rows, heads, most]
  int64_t* cell;  // [rows, kv_heads, most] where each token's value begins
  float* scale;   // [rows, kv_heads, most] of that value, where cells have scales
  int64_t most;
};
Scores carve(const QsaAttend& a, int64_t rows, Carver& carver) {
  const int64_t most = most_selected(a);
  const bool scales = a.pool.type == CacheType::kI8;
  return {carver.take<float>(rows * a.heads * most),
          carver.take<int64_t>(rows * a.pool.kv_heads * most),
          carver.take<float>(scales ? rows * a.pool.kv_heads * most : 0), most};
}

// A warp a token, for all heads that share its key.
__global__ void __launch_bounds__(kThreads) attend_scores_kernel(QsaAttend a, Scores to) {
  extern __shared__ float q[];  // [heads of the group, dk]
  chained();
  const KvPool& p = a.pool;
  const int row = blockIdx.z, kv = blockIdx.y, group = a.heads / p.kv_heads;
  if (row >= *a.rows.n_rows) return;
  const int slot = a.rows.slot[row];
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(p.dk));
  const Selected sel = selected_by(a, row);
  if (int64_t{blockIdx.x} * kWarps >= sel.n) return;
  for (int i = threadIdx.x; i < group * p.dk; i += kThreads) {
    q[i] = a.q.row(row)[int64_t{kv} * group * p.dk + i];
  }
  __syncthreads();
  int64_t* const cells = to.cell + (int64_t{row} * p.kv_heads + kv) * to.most;
  float* const scores = to.score + (int64_t{row} * a.heads + int64_t{kv} * group) * to.most;
  for (int64_t s = blockIdx.x * kWarps + warp_id(); s < sel.n; s += int64_t{gridDim.x} * kWarps) {
    const int64_t token = token_of(sel, s);
    const std::byte* const cell = p.k + p.cell(a.rows, slot, token, kv, p.dk);
    float key[kMostPerLane];
#pragma unroll
    for (int i = 0; i < kMostPerLane; ++i) {
      const int at = i * kLanes + lane_id();
      key[i] = at < p.dk ? load(p.type, cell, at) : 0.0f;
    }
    const bool scales = p.type == CacheType::kI8;
    const float key_scale = scales ? scale_of(p, p.k, a.rows, slot, token, kv, p.dk) : 1.0f;
    if (lane_id() == 0) {
      cells[s] = p.cell(a.rows, slot, token, kv, p.dv);
      if (scales) {
        to.scale[(int64_t{row} * p.kv_heads + kv) * to.most + s] =
            scale_of(p, p.v, a.rows, slot, token, kv, p.dv);
      }
    }
#pragma unroll 4
    for (int h = 0; h < group; ++h) {
      float acc = 0;
#pragma unroll
      for (int i = 0; i < kMostPerLane; ++i) {
        const int at = i * kLanes + lane_id();
        if (at < p.dk) acc = __builtin_fmaf(q[h * p.dk + at], key[i], acc);
      }
      float x = lane_tree(acc) * scale;
      if (scales) x = x * key_scale;
      if (lane_id() == 0) scores[h * to.most + s] = x;
    }
  }
}

// A block of threads kColumns values of a head.
template <class V>
__global__ void __launch_bounds__(kValueThreads) attend_values_kernel(QsaAttend a, Scores from) {
  constexpr int kTokenBytes = kColumns * sizeof(V), kPieces = kTokenBytes / 16;
  extern __shared__ __align__(16) uint8_t memory[];
  __shared__ float best_of[kValueThreads / kLanes], inverse;
  chained();
  const KvPool& p = a.pool;
  const int row = blockIdx.z, h = blockIdx.y, first = static_cast<int>(blockIdx.x) * kColumns;
  if (row >= *a.rows.n_rows) return;
  const int kv = h / (a.heads / p.kv_heads);
  const Selected sel = selected_by(a, row);
  const int n = static_cast<int>(sel.n);
  const float* const score = from.score + (int64_t{row} * a.heads + h) * from.most;
  const int64_t* const cells = from.cell + (int64_t{row} * p.kv_heads + kv) * from.most;
  auto* const weight = reinterpret_cast<float*>(memory + kAhead * kChunk * kTokenBytes);
  const auto bring = [&](int chunk) {
    uint8_t* const to = memory + chunk % kAhead * kChunk * kTokenBytes;
    for (int i = threadIdx.x; i < kChunk * kPieces; i += kValueThreads) {
      const int t = i / kPieces, s = chunk * kChunk + t;
      if (s >= n) break;
      fetch16(to + t * kTokenBytes + i % kPieces * 16,
              p.v + cells[s] + first * static_cast<int>(sizeof(V)) + i % kPieces * 16);
    }
    close_group();
  };
  for (int c = 0; c < kAhead - 1; ++c) bring(c);
  float best = kMinusInfinity;
  for (int s = threadIdx.x; s < n; s += kValueThreads) {
    const float x = score[s];
    weight[s] = x;
    best = x > best ? x : best;
  }
  best = lane_max(best);
  if (lane_id() == 0) best_of[warp_id()] = best;
  __syncthreads();
  for (float other : best_of) best = other > best ? other : best;
  for (int s = threadIdx.x; s < n; s += kValueThreads) weight[s] = exp_c(weight[s] - best);
  __syncthreads();
  if (warp_id() == 1) {
    float sum = 0;
#pragma unroll 8
    for (int s = lane_id(); s < n; s += kLanes) sum = sum + weight[s];
    sum = lane_tree(sum);
    if (lane_id() == 0) inverse = 1.0f / sum;
  }
  if constexpr (sizeof(V) == 1) {
    __syncthreads();
    const float* const scale = from.scale + (int64_t{row} * p.kv_heads + kv) * from.most;
    for (int s = threadIdx.x; s < n; s += kValueThreads) weight[s] = weight[s] * scale[s];
  }
  float sum = 0;
  for (int c = 0; c * kChunk < n; ++c) {
    fetched_but<kAhead - 2>();
    __syncthreads();  // the chunk is there, and the one before has been used
    bring(c + kAhead - 1);
    if (warp_id() != 0) continue;
    const auto* const v =
        reinterpret_cast<const V*>(memory + c % kAhead * kChunk * kTokenBytes) + lane_id();
    const int here = min(kChunk, n - c * kChunk);
    const float* const w = weight + c * kChunk;
#pragma unroll 8
    for (int t = 0; t < here; ++t) sum = __builtin_fmaf(w[t], as_float(v[t * kColumns]), sum);
  }
  fetched();
  __syncthreads();
  if (warp_id() != 0) return;
  const int column = first + lane_id();
  const float* gate = a.gate.row(row) + int64_t{h} * a.gate_stride + a.gate_offset;
  a.out.row(row)[int64_t{h} * p.dv + column] = sum * inverse * sigmoid_c(gate[column]);
}

}  // namespace

bool attend_few_takes(const QsaAttend& a, int64_t rows) {
  const KvPool& p = a.pool;
  const int64_t most = most_selected(a);
  const auto shared = static_cast<int64_t>(most * sizeof(float)) + kAhead * kChunk * kColumns * 4;
  return rows <= kMostFewRows && most <= kMostTokens && shared + 1024 <= most_shared() &&
         p.dk <= kMostPerLane * kLanes && p.dv % kColumns == 0 &&
         a.heads / p.kv_heads * p.dk * 4 <= 48 * 1024 && reinterpret_cast<uintptr_t>(p.v) % 16 == 0;
}

Bytes attend_few_scratch(const QsaAttend& a) {
  if (!attend_few_takes(a, 1)) return 0;
  Carver carver(nullptr);
  carve(a, std::min<int64_t>(a.q.extent(0), kMostFewRows), carver);
  return carver.peak();
}

void attend_few(const QsaAttend& a, NativeStream s) {
  Carver carver(a.scratch.data());
  const Scores scores = carve(a, a.q.extent(0), carver);
  const auto rows = static_cast<unsigned>(a.q.extent(0));
  const KvPool& p = a.pool;
  const unsigned blocks = std::min<unsigned>(blocks_for(scores.most, kWarps), kMostScoreBlocks);
  const size_t q_bytes = static_cast<size_t>(a.heads / p.kv_heads * p.dk) * sizeof(float);
  launch_chained(attend_scores_kernel, {blocks, static_cast<unsigned>(p.kv_heads), rows}, kThreads,
                 q_bytes, s, a, scores);
  const dim3 grid(static_cast<unsigned>(p.dv / kColumns), static_cast<unsigned>(a.heads), rows);
  const size_t shared = static_cast<size_t>(scores.most) * sizeof(float) +
                        static_cast<size_t>(kAhead * kChunk * kColumns * bytes_of(p.type));
  auto* const kernel = p.type == CacheType::kF32   ? attend_values_kernel<float>
                       : p.type == CacheType::kF16 ? attend_values_kernel<uint16_t>
                                                   : attend_values_kernel<int8_t>;
  launch_chained(kernel, grid, kValueThreads, shared, s, a, scores);
}

}  // namespace strata::kernels::gpu
