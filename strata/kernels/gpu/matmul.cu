#include "strata/base/carver.h"
#include "strata/kernels/gpu/gpu.h"
#include "strata/kernels/gpu/lanes.cuh"
#include "strata/kernels/gpu/launch.h"
#include "strata/kernels/gpu/products.h"

namespace strata::kernels::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostWidth = 11264;  // floats of a stream in shared memory

Activations inputs_of(const MatMul& a, Carver& carver) {
  Activations x{.n_rows = a.n_rows,
                .x = a.x.data(),
                .max_rows = a.x.extent(0),
                .cols = static_cast<int>(a.x.extent(1))};
  for (int i = 0; i < a.n_out; ++i) x.want(a.out[static_cast<size_t>(i)].w, carver);
  return x;
}

// ---- reading the streams ----

struct HcParts {
  Activations n, lo;
  float *normed, *lo_raw, *m;  // [rows, streams * width], [rows, low rank], [rows, streams * width]
};
HcParts carve(const HcRead& a, Carver& carver) {
  const int64_t rows = a.residual.extent(0), wide = a.residual.extent(1) * a.residual.extent(2);
  HcParts p{};
  p.normed = carver.take<float>(rows * wide);
  p.lo_raw = carver.take<float>(rows * a.down.rows);
  p.m = carver.take<float>(rows * wide);
  p.n = {.n_rows = a.n_rows, .x = p.normed, .max_rows = rows, .cols = static_cast<int>(wide)};
  p.n.want(a.down, carver);
  if (a.inject) p.n.want(a.inject, carver);
  p.lo = {.n_rows = a.n_rows,
          .x = p.lo_raw,
          .from = Activations::From::kSilu,
          .factor = 1.0f / static_cast<float>(a.residual.extent(1)),
          .max_rows = rows,
          .cols = a.down.rows};
  p.lo.want(a.up, carver);
  return p;
}

// A block of threads a stream of a row: all of them read and write, one warp sums.
__global__ void __launch_bounds__(kThreads) hc_norm_kernel(HcRead a, float* normed) {
  extern __shared__ float x[];
  __shared__ float inverse;
  const int64_t streams = a.residual.extent(1), width = a.residual.extent(2), at = blockIdx.x;
  if (at / streams >= *a.n_rows) return;
  const float* h = a.residual.data() + at * width;
  const float* norm = a.norm + at % streams * width;
  for (int64_t i = threadIdx.x; i < width; i += kThreads) x[i] = h[i];
  __syncthreads();
  if (warp_id() == 0) {
    const float r = lane_inverse_rms(x, width, a.eps);
    if (lane_id() == 0) inverse = r;
  }
  __syncthreads();
  for (int64_t i = threadIdx.x; i < width; i += kThreads) {
    normed[at * width + i] = x[i] * inverse * norm[i];
  }
}

__global__ void hc_mix_kernel(HcRead a, const float* normed, const float* m) {
  const int64_t streams = a.residual.extent(1), width = a.residual.extent(2);
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (row >= *a.n_rows) return;
  const float inverse = 1.0f / static_cast<float>(streams);
  if (i < width) {
    float sum = 0;
    for (int64_t s = 0; s < streams; ++s) {
      const int64_t at = (row * streams + s) * width + i;
      sum = __builtin_fmaf(sigmoid_c(m[at]), normed[at], sum);
    }
    a.u.row(row)[i] = sum * inverse;
  }
  if (a.inject.rows > 0 && i < streams) {
    float* const inj = a.inj.row(row) + i;
    *inj = 2.0f * sigmoid_c(*inj * inverse);
  }
}

}  // namespace

Bytes matmul_scratch(const device::Stream&, const MatMul& a) {
  Carver carver(nullptr);
  inputs_of(a, carver);
  return carver.peak();
}
void matmul(const MatMul& a, NativeStream s) {
  Carver carver(a.scratch.data());
  const Activations x = inputs_of(a, carver);
  x.prepare(s);
  ProductList list(x, s);
  for (int i = 0; i < a.n_out; ++i) {
    list.add(a.out[static_cast<size_t>(i)].w, a.out[static_cast<size_t>(i)].y.data());
  }
  list.run();
}

bool hc_read_takes(const HcRead& a) { return a.residual.extent(2) <= kMostWidth; }
Bytes hc_read_scratch(const device::Stream&, const HcRead& a) {
  Carver carver(nullptr);
  carve(a, carver);
  return carver.peak();
}
void hc_read(const HcRead& a, NativeStream s) {
  Carver carver(a.scratch.data());
  const HcParts p = carve(a, carver);
  const int64_t rows = a.residual.extent(0), streams = a.residual.extent(1);
  const size_t shared = static_cast<size_t>(a.residual.extent(2)) * sizeof(float);
  hc_norm_kernel<<<static_cast<unsigned>(rows * streams), kThreads, shared, s>>>(a, p.normed);
  p.n.prepare(s);
  ProductList down(p.n, s);
  down.add(a.down, p.lo_raw);
  if (a.inject) down.add(a.inject, a.inj.data());
  down.run();
  p.lo.prepare(s);
  ProductList up(p.lo, s);
  up.add(a.up, p.m);
  up.run();
  const dim3 grid(blocks_for(a.residual.extent(2), kThreads), static_cast<unsigned>(rows));
  hc_mix_kernel<<<grid, kThreads, 0, s>>>(a, p.normed, p.m);
}

}  // namespace strata::kernels::gpu
