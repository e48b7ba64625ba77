#include "strata/kernels/gpu/chain.cuh"
#include "strata/kernels/gpu/gpu.h"
#include "strata/kernels/gpu/lanes.cuh"
#include "strata/kernels/gpu/launch.h"
#include "strata/kernels/gpu/sequences.cuh"

// Ops that remember: convolutions and the gated delta rule.
namespace strata::kernels::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kChains = 4;    // of a sum over the key index
constexpr int kColumns = 32;  // of the state that a block of the delta rule holds
constexpr int kMostKeys = 256;

// The first `max_rows` blocks in y compute rows, the others what the tails remember.
__global__ void conv_kernel(Conv a, int max_rows) {
  chained();
  const int64_t channels = a.x.extent(1), c = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (c >= channels) return;
  const int depth = a.dilation * (a.taps - 1);
  const int y = blockIdx.y;
  if (y >= max_rows) {
    const int seq = (y - max_rows) / depth, d = (y - max_rows) % depth;
    if (seq < *a.rows.n_seqs) keep_in_tail(a.rows, a.x, a.tail, seq, d, depth, c);
    return;
  }
  if (y >= *a.rows.n_rows) return;
  const Place at = place_of(a.rows, y);
  const float* old = a.tail.side(at.slot, a.rows.side[at.slot]);
  float sum = 0;
  for (int k = 0; k < a.taps; ++k) {
    const int t = at.t - a.dilation * (a.taps - 1 - k);
    const float x =
        t >= 0 ? a.x.row(at.first + t)[c] : old[static_cast<int64_t>(depth + t) * channels + c];
    sum = __builtin_fmaf(a.w[c * a.taps + k], x, sum);
  }
  float* out = a.out.row(y) + c;
  *out = a.z ? *out + (a.z.row(y)[c] + silu_c(sum)) : silu_c(sum);
  if (a.tail.logs(at.n)) a.tail.logged(at.slot, at.t)[c] = a.x.row(y)[c];
}

__global__ void tail_commit_kernel(TailCommit a) {
  const int64_t depth = a.tail.depth(), width = a.tail.width();
  const int64_t c = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int seq = static_cast<int>(blockIdx.y / depth);
  const int64_t d = blockIdx.y % depth;
  if (c >= width || seq >= *a.rows.n_seqs) return;
  const int kept = a.kept[seq];
  if (kept < 0) return;
  const int slot = a.rows.seq_slot[seq], side = a.rows.side[slot];
  const int64_t t = kept - depth + d;
  const float* from = t >= 0 ? a.tail.logged(slot, static_cast<int>(t))
                             : a.tail.side(slot, side) + (depth + t) * width;
  a.tail.side(slot, 1 - side)[d * width + c] = from[c];
}

// One warp: x / sqrt(sum of squares + eps) * scale.
__device__ void l2_normalise(const float* x, int n, float eps, float scale, float* out) {
  const auto at = [x](int64_t i) { return x[i]; };
  const float r = 1.0f / __builtin_sqrtf(lane_dot(at, at, n) + eps) * scale;
  for (int i = lane_id(); i < n; i += kLanes) out[i] = x[i] * r;
}

// (0 + 1) + (2 + 3) of the chains that four neighbours hold.
__device__ float join_chains(float v) {
  v = v + from_lane_xor(v, 1);
  return v + from_lane_xor(v, 2);
}

// A block holds kColumns columns of one head's state in registers, a thread kKeys elements of one:
// those of its chain.
template <int kKeys>
__global__ void __launch_bounds__(kColumns* kChains) gdn_kernel(Gdn a) {
  chained();
  extern __shared__ float shared[];
  const int seq = blockIdx.z, h = blockIdx.y, kh = h % a.key_heads, dk = a.dk, dv = a.dv;
  if (seq >= *a.rows.n_seqs) return;
  const int slot = a.rows.seq_slot[seq], side = a.rows.side[slot], n = a.rows.seq_rows[seq];
  const int j = static_cast<int>(blockIdx.x) * kColumns + static_cast<int>(threadIdx.x) / kChains;
  const int chain = threadIdx.x % kChains;
  const bool logs = a.state.logs(n), first_block = blockIdx.x == 0;
  const float q_scale = 1.0f / __builtin_sqrtf(static_cast<float>(dk));
  const float* from = a.state.side(slot, side) + int64_t{h} * dk * dv + j;
  float s[kKeys];
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    const int k = kChains * i + chain;
    s[i] = k < dk && j < dv ? from[int64_t{k} * dv] : 0.0f;
  }
  for (int t = 0; t < n; ++t) {
    const int row = a.rows.seq_first[seq] + t;
    const float* qkv = a.qkv.row(row);
    // Two sets, so that one barrier a token is enough.
    float* const q = shared + t % 2 * (2 * dk + 2);
    float* const k = q + dk;
    if (warp_id() == 0) l2_normalise(qkv + (a.key_heads + kh) * dk, dk, a.eps, 1.0f, k);
    if (warp_id() == 1) l2_normalise(qkv + kh * dk, dk, a.eps, q_scale, q);
    if (threadIdx.x == 2 * kLanes) k[dk] = sigmoid_c(a.beta.row(row)[h]);
    if (threadIdx.x == 3 * kLanes) {
      k[dk + 1] = exp_c(a.a[h] * softplus_c(a.alpha.row(row)[h] + a.dt[h]));
    }
    const float v = j < dv ? qkv[2 * a.key_heads * dk + h * dv + j] : 0.0f;
    __syncthreads();
    const float beta = k[dk], decay = k[dk + 1];
    float seen = 0;
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
      const int at = kChains * i + chain;
      if (at >= dk) continue;
      s[i] = decay * s[i];
      seen = __builtin_fmaf(s[i], k[at], seen);
    }
    const float d = beta * (v - join_chains(seen));
    float o = 0;
#pragma unroll
    for (int i = 0; i < kKeys; ++i) {
      const int at = kChains * i + chain;
      if (at >= dk) continue;
      s[i] = __builtin_fmaf(k[at], d, s[i]);
      o = __builtin_fmaf(s[i], q[at], o);
    }
    o = join_chains(o);
    if (chain == 0 && j < dv) {
      a.o.row(row)[int64_t{h} * dv + j] = o;
      if (logs) a.state.log_d.row(slot)[(int64_t{t} * a.value_heads + h) * dv + j] = d;
    }
    if (!logs || !first_block) continue;
    if (threadIdx.x == 0) a.state.log_g.row(slot)[int64_t{t} * a.value_heads + h] = decay;
    if (h != kh) continue;  // the heads that share a key need not all keep it
    float* const log_k = a.state.log_k.row(slot) + (int64_t{t} * a.key_heads + kh) * dk;
    for (int i = threadIdx.x; i < dk; i += blockDim.x) log_k[i] = k[i];
  }
  float* to = a.state.side(slot, 1 - side) + int64_t{h} * dk * dv + j;
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    const int k = kChains * i + chain;
    if (k < dk && j < dv) to[int64_t{k} * dv] = s[i];
  }
}

__global__ void gdn_commit_kernel(GdnCommit a) {
  const int seq = blockIdx.z, h = blockIdx.y, dk = a.dk, dv = a.dv;
  const int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (seq >= *a.rows.n_seqs || at >= int64_t{dk} * dv) return;
  const int kept = a.kept[seq];
  if (kept < 0) return;
  const int slot = a.rows.seq_slot[seq], side = a.rows.side[slot];
  const int64_t i = at / dv, j = at % dv, head = int64_t{h} * dk * dv;
  float s = a.state.side(slot, side)[head + at];
  for (int64_t t = 0; t < kept; ++t) {
    const float decay = a.state.log_g.row(slot)[t * a.value_heads + h];
    const float k = a.state.log_k.row(slot)[(t * a.key_heads + h % a.key_heads) * dk + i];
    const float d = a.state.log_d.row(slot)[(t * a.value_heads + h) * dv + j];
    s = __builtin_fmaf(k, d, decay * s);
  }
  a.state.side(slot, 1 - side)[head + at] = s;
}

template <int kKeys>
void launch_gdn(const Gdn& a, NativeStream s) {
  const dim3 grid(blocks_for(a.dv, kColumns), static_cast<unsigned>(a.value_heads),
                  static_cast<unsigned>(a.rows.max_seqs));
  const size_t shared = 2 * (2 * static_cast<size_t>(a.dk) + 2) * sizeof(float);
  launch_chained(gdn_kernel<kKeys>, grid, kColumns * kChains, shared, s, a);
}

}  // namespace

void conv(const Conv& a, NativeStream s) {
  const int64_t n = a.x.extent(0), depth = int64_t{a.dilation} * (a.taps - 1);
  const dim3 grid(blocks_for(a.x.extent(1), kThreads),
                  static_cast<unsigned>(n + depth * a.rows.max_seqs));
  launch_chained(conv_kernel, grid, kThreads, 0, s, a, static_cast<int>(n));
}

void tail_commit(const TailCommit& a, NativeStream s) {
  if (a.tail.depth() == 0) return;
  const dim3 grid(blocks_for(a.tail.width(), kThreads),
                  static_cast<unsigned>(a.tail.depth() * a.rows.max_seqs));
  tail_commit_kernel<<<grid, kThreads, 0, s>>>(a);
}

bool gdn_takes(const Gdn& a) { return a.dk <= kMostKeys; }
void gdn(const Gdn& a, NativeStream s) {
  if (a.dk <= 32) return launch_gdn<8>(a, s);
  if (a.dk <= 64) return launch_gdn<16>(a, s);
  if (a.dk <= 128) return launch_gdn<32>(a, s);
  launch_gdn<64>(a, s);
}

void gdn_commit(const GdnCommit& a, NativeStream s) {
  const dim3 grid(blocks_for(int64_t{a.dk} * a.dv, kThreads), static_cast<unsigned>(a.value_heads),
                  static_cast<unsigned>(a.rows.max_seqs));
  gdn_commit_kernel<<<grid, kThreads, 0, s>>>(a);
}

}  // namespace strata::kernels::gpu
