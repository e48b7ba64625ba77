#include "strata/kernels/gpu/chain.cuh"
#include "strata/kernels/gpu/gpu.h"
#include "strata/kernels/gpu/lanes.cuh"
#include "strata/kernels/gpu/launch.h"

// Ops that work row by row: elements, norms, gates.
namespace strata::kernels::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = 4;  // of a block whose warps work alone
constexpr int kMaxChosen = 64;

__device__ int64_t column() { return int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ int warp_in_grid() { return static_cast<int>(blockIdx.x) * kWarps + warp_id(); }

dim3 elements(int64_t width, int64_t rows) {
  return {blocks_for(width, kThreads), static_cast<unsigned>(rows > 0 ? rows : 1)};
}

__global__ void zero_kernel(float* out, int64_t n) {
  if (column() < n) out[column()] = 0;
}

__global__ void copy_rows_kernel(CopyRows a) {
  chained();
  const int64_t width = a.x.size() / a.x.extent(0), i = column();
  const int row = blockIdx.y;
  if (row >= *a.n_rows || i >= width) return;
  a.out.row(row)[i] = a.x.row(a.index[row])[i];
}

__global__ void scatter_rows_kernel(ScatterRows a) {
  chained();
  const int64_t width = a.x.size() / a.x.extent(0), i = column();
  const int row = blockIdx.y;
  if (row >= *a.n_rows || i >= width) return;
  a.out.row(a.index[row])[i] = a.x.row(row)[i];
}

__global__ void hc_write_kernel(HcWrite a) {
  chained();
  const int64_t streams = a.residual.extent(1), width = a.residual.extent(2), i = column();
  const int row = blockIdx.y;
  if (row >= *a.n_rows || i >= width) return;
  const float y = a.y.row(row)[i];
  for (int64_t s = 0; s < streams; ++s) {
    float* const h = a.residual.row(row) + s * width + i;
    *h = __builtin_fmaf(a.inj.row(row)[s], y, *h);
  }
}

__global__ void expert_combine_kernel(ExpertCombine a) {
  chained();
  const int row = blockIdx.y, top_k = static_cast<int>(a.id.extent(1));
  if (row >= *a.n_rows) return;
  // By ascending expert id, wherever the chosen ones stand.
  __shared__ int order[kMaxChosen];
  __shared__ float weight[kMaxChosen];
  const int32_t* id = a.id.row(row);
  for (int j = threadIdx.x; j < top_k; j += blockDim.x) {
    int rank = 0;
    for (int other = 0; other < top_k; ++other) {
      rank += id[other] < id[j] || (id[other] == id[j] && other < j) ? 1 : 0;
    }
    order[rank] = j;
    weight[rank] = a.weight.row(row)[j];
  }
  __syncthreads();
  const int64_t width = a.y.extent(1), i = column();
  if (i >= width) return;
  const float gate = sigmoid_c(a.gate_logit.row(row)[0]);
  float sum = 0;
#pragma unroll 8
  for (int j = 0; j < top_k; ++j) {
    sum = __builtin_fmaf(weight[j], a.expert.row(row)[order[j] * width + i], sum);
  }
  a.y.row(row)[i] = __builtin_fmaf(gate, a.shared.row(row)[i], sum);
}

// A warp a row.
__global__ void draft_input_kernel(DraftInput a) {
  chained();
  const int row = warp_in_grid();
  if (row >= *a.n_rows) return;
  const int64_t streams = a.residual.extent(1), width = a.residual.extent(2);
  const float* e = a.e.row(row);
  const float* h = a.residual.row(row);
  const float re = lane_inverse_rms(e, width, a.eps);
  const float full = a.per_stream ? 0 : lane_inverse_rms(h, streams * width, a.eps);
  for (int64_t s = 0; s < streams; ++s) {
    const float* hs = h + s * width;
    const float rh = a.per_stream ? lane_inverse_rms(hs, width, a.eps) : full;
    float* out = a.out.row(row) + s * 2 * width;
    for (int64_t i = lane_id(); i < width; i += kLanes) {
      out[i] = e[i] * re * a.enorm[i];
      out[width + i] = hs[i] * rh * a.hnorm[s * width + i];
    }
  }
}

// A warp a head.
__global__ void gated_norm_kernel(GatedNorm a) {
  chained();
  const int heads = static_cast<int>(a.o.extent(1) / a.dv);
  const int row = warp_in_grid() / heads, h = warp_in_grid() % heads;
  if (row >= *a.n_rows) return;
  const int64_t at = int64_t{h} * a.dv;
  const float* o = a.o.row(row) + at;
  const float r = lane_inverse_rms(o, a.dv, a.eps);
  for (int i = lane_id(); i < a.dv; i += kLanes) {
    a.out.row(row)[at + i] = o[i] * r * a.w[i] * sigmoid_c(a.z.row(row)[at + i]);
  }
}

// A warp a stream of a row.
__global__ void ple_mix_kernel(PleMix a) {
  chained();
  const int streams = static_cast<int>(a.residual.extent(1));
  const int64_t width = a.residual.extent(2);
  const int row = warp_in_grid() / streams;
  if (row >= *a.n_rows) return;
  const int64_t at = warp_in_grid() % streams * width;
  const float* k = a.key.row(row) + at;
  const float* h = a.residual.row(row) + at;
  const float rk = lane_inverse_rms(k, width, a.eps), rh = lane_inverse_rms(h, width, a.eps);
  const float dot = lane_dot([&](int64_t i) { return k[i] * rk * a.norm_key[at + i]; },
                             [&](int64_t i) { return h[i] * rh * a.norm_query[at + i]; }, width) /
                    __builtin_sqrtf(static_cast<float>(width));
  const float size = dot < 0 ? -dot : dot;
  const float root = __builtin_sqrtf(size < 1e-6f ? 1e-6f : size);
  const float gate = sigmoid_c(dot > 0 ? root : (dot < 0 ? -root : 0.0f * dot));
  const float* value = a.value.row(row);
  const auto z = [&](int64_t i) { return gate * value[i]; };
  const float rz =
      1.0f / __builtin_sqrtf(lane_dot(z, z, width) / static_cast<float>(width) + a.eps);
  for (int64_t i = lane_id(); i < width; i += kLanes) {
    a.z.row(row)[at + i] = z(i);
    a.normed.row(row)[at + i] = z(i) * rz * a.norm_conv[at + i];
  }
}

// A warp a head of a row.
__global__ void qk_norm_rope_kernel(QkNormRope a) {
  chained();
  const int row = warp_in_grid() / a.heads, h = warp_in_grid() % a.heads;
  if (row >= *a.rows.n_rows) return;
  const float* x = a.x.row(row) + int64_t{h} * a.head_stride;
  float* out = a.out.row(row) + int64_t{h} * a.dim;
  const float* rope = a.rows.rope + int64_t{row} * 2 * a.pairs;
  const float r = lane_inverse_rms(x, a.dim, a.eps);
  for (int i = lane_id(); i < a.pairs; i += kLanes) {
    const float c = rope[i], s = rope[a.pairs + i];
    const float u = x[i] * r * a.w[i], v = x[i + a.pairs] * r * a.w[i + a.pairs];
    out[i] = __builtin_fmaf(u, c, -(v * s));
    out[i + a.pairs] = __builtin_fmaf(v, c, u * s);
  }
  for (int i = 2 * a.pairs + lane_id(); i < a.dim; i += kLanes) out[i] = x[i] * r * a.w[i];
}

}  // namespace

void zero(const Zero& a, NativeStream s) {
  zero_kernel<<<blocks_for(a.out.size(), kThreads), kThreads, 0, s>>>(a.out.data(), a.out.size());
}
void copy_rows(const CopyRows& a, NativeStream s) {
  launch_chained(copy_rows_kernel, elements(a.x.size() / a.x.extent(0), a.index.extent(0)),
                 kThreads, 0, s, a);
}
void scatter_rows(const ScatterRows& a, NativeStream s) {
  const int64_t n = a.x.extent(0);
  launch_chained(scatter_rows_kernel, elements(a.x.size() / n, n), kThreads, 0, s, a);
}
void hc_write(const HcWrite& a, NativeStream s) {
  launch_chained(hc_write_kernel, elements(a.y.extent(1), a.y.extent(0)), kThreads, 0, s, a);
}
bool expert_combine_takes(const ExpertCombine& a) { return a.id.extent(1) <= kMaxChosen; }
void expert_combine(const ExpertCombine& a, NativeStream s) {
  launch_chained(expert_combine_kernel, elements(a.y.extent(1), a.y.extent(0)), kThreads, 0, s, a);
}
void draft_input(const DraftInput& a, NativeStream s) {
  launch_chained(draft_input_kernel, blocks_for(a.e.extent(0), kWarps), kWarps * kLanes, 0, s, a);
}
void gated_norm(const GatedNorm& a, NativeStream s) {
  const int64_t heads = a.o.size() / a.dv;
  launch_chained(gated_norm_kernel, blocks_for(heads, kWarps), kWarps * kLanes, 0, s, a);
}
void ple_mix(const PleMix& a, NativeStream s) {
  const int64_t n = a.residual.extent(0) * a.residual.extent(1);
  launch_chained(ple_mix_kernel, blocks_for(n, kWarps), kWarps * kLanes, 0, s, a);
}
void qk_norm_rope(const QkNormRope& a, NativeStream s) {
  const int64_t n = a.x.extent(0) * a.heads;
  launch_chained(qk_norm_rope_kernel, blocks_for(n, kWarps), kWarps * kLanes, 0, s, a);
}

}  // namespace strata::kernels::gpu
