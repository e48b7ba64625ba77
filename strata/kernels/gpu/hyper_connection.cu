#include "strata/base/carver.h"
#include "strata/kernels/gpu/few.cuh"
#include "strata/kernels/gpu/gpu.h"
#include "strata/kernels/gpu/launch.h"

// Reading the residual streams.
namespace strata::kernels::gpu {
namespace {

constexpr int kThreads = 512;
constexpr int64_t kMostWidth = 11264;  // floats of a stream in shared memory
constexpr int kMostStreams = 8;

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

// A block of threads a stream of a row: all of them read and write, one warp sums. kBlock: the
// stream is quantised, too, in blocks of so many.
template <int kBlock>
__global__ void __launch_bounds__(kThreads)
    hc_norm_kernel(HcRead a, float* normed, QuantRows codes) {
  extern __shared__ float x[];
  __shared__ float inverse;
  chained();
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
    x[i] = x[i] * inverse * norm[i];
    normed[at * width + i] = x[i];
  }
  if constexpr (kBlock > 0) {
    __syncthreads();
    for (int64_t i = warp_id() * kPiece + lane_id() * kEach; i < width; i += kThreads * kEach) {
      float eight[kEach];
#pragma unroll
      for (int k = 0; k < kEach; ++k) eight[k] = x[i + k];
      keep_eight<kBlock>(quantise_eight<kBlock>(eight), at * width + i, codes);
    }
  }
}

__global__ void hc_mix_kernel(HcRead a, const float* normed, const float* m) {
  chained();
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

// Of a few rows the last two steps are one: a block of threads has a tile of each stream.
struct Mix {
  const int32_t* n_rows;
  const std::byte* up;
  const float* scale;  // of up, or null
  ActivationSource lo;
  const float* normed;
  float *u, *inj;  // inj null: none
  int streams, width, low_rank;
  FewLayout layout;
};

template <class T, bool kMany>
__global__ void __launch_bounds__(kFewThreads, kMany ? 2 : 4)
    hc_up_kernel(const __grid_constant__ Mix a) {
  constexpr int kRows = kRowsOf<kMany>;
  extern __shared__ __align__(128) uint8_t memory[];
  let_next_begin();
  const int tile_bytes = a.low_rank / T::kValues * T::kBytes * kTileRows;
  const int tiles = a.width / kTileRows, tile = static_cast<int>(blockIdx.x);
  for (int s = 0; s < a.streams; ++s) {
    fetch(memory + s * tile_bytes, a.up + int64_t{s * tiles + tile} * tile_bytes, tile_bytes);
  }
  const QuantRows x{reinterpret_cast<int8_t*>(memory + a.layout.q),
                    reinterpret_cast<float*>(memory + a.layout.scale),
                    reinterpret_cast<int16_t*>(memory + a.layout.sums)};
  auto* const segments = reinterpret_cast<float*>(memory + a.layout.segments);
  __shared__ float gate[kMostStreams * kFewAtOnce * kTileRows];
  const float inverse = 1.0f / static_cast<float>(a.streams);
  wait_for_before();
  const int n = *a.n_rows;
  if (blockIdx.x == 0 && a.inj != nullptr) {
    for (int i = threadIdx.x; i < n * a.streams; i += kFewThreads) {
      a.inj[i] = 2.0f * sigmoid_c(a.inj[i] * inverse);
    }
  }
  for (int first = 0; first < n; first += kRows) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int n_blocks = a.low_rank / T::kBlock;
      quantise_row<T::kBlock>(
          a.lo, min(first + i, n - 1), a.low_rank,
          {x.q + i * a.low_rank, x.scale + i * n_blocks, x.sums + i * (a.low_rank / 16)});
    }
    fetched();
    __syncthreads();
    for (int s = 0; s < a.streams; ++s) {
      float acc[kRows] = {};
      add_segment<T, kRows>(memory + s * tile_bytes, a.low_rank, x, acc);
      if (lane_id() >= kTileRows) continue;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        segments[((s * kFewWarps + warp_id()) * kRows + i) * kTileRows + lane_id()] = acc[i];
      }
    }
    __syncthreads();
    for (int j = threadIdx.x; j < a.streams * kRows * kTileRows; j += kFewThreads) {
      const float* const of = segments + j / (kRows * kTileRows) * kFewWarps * kRows * kTileRows +
                              j % (kRows * kTileRows);
      float sum = of[0];
#pragma unroll
      for (int k = 1; k < kFewWarps; ++k) sum = sum + of[k * kRows * kTileRows];
      gate[j] = sigmoid_c(sum * (a.scale ? *a.scale : 1.0f));
    }
    __syncthreads();
    if (threadIdx.x < kRows * kTileRows) {
      const int row = first + static_cast<int>(threadIdx.x) / kTileRows;
      const int column = tile * kTileRows + static_cast<int>(threadIdx.x) % kTileRows;
      if (row < n) {
        float sum = 0;
        for (int s = 0; s < a.streams; ++s) {
          sum = __builtin_fmaf(gate[s * kRows * kTileRows + threadIdx.x],
                               a.normed[int64_t{row * a.streams + s} * a.width + column], sum);
        }
        a.u[int64_t{row} * a.width + column] = sum * inverse;
      }
    }
    if (kMany) __syncthreads();
  }
  fetched();
}

// The type that files have for these matrices; others go through the general products.
bool mixes_at_once(const HcRead& a) {
  return a.up.type == quant::Type::kQ8_0 && few_takes(a.up, a.residual.extent(0)) &&
         a.residual.extent(1) <= kMostStreams && a.residual.extent(2) % kTileRows == 0;
}

void up_and_mix(const HcRead& a, const HcParts& p, NativeStream s) {
  const bool many = a.residual.extent(0) > 1;
  const int streams = static_cast<int>(a.residual.extent(1));
  const Mix mix{.n_rows = a.n_rows,
                .up = a.up.data,
                .scale = a.up.scale,
                .lo = p.lo.source(),
                .normed = p.normed,
                .u = a.u.data(),
                .inj = a.inject ? a.inj.data() : nullptr,
                .streams = streams,
                .width = static_cast<int>(a.residual.extent(2)),
                .low_rank = a.up.cols,
                .layout = few_layout(Q8_0::kBytes, Q8_0::kValues, Q8_0::kBlock, a.up.cols, streams,
                                     many ? kFewAtOnce : 1)};
  const dim3 grid(static_cast<unsigned>(mix.width / kTileRows));
  const auto shared = static_cast<size_t>(mix.layout.end);
  launch_chained(many ? hc_up_kernel<Q8_0, true> : hc_up_kernel<Q8_0, false>, grid, kFewThreads,
                 shared, s, mix);
}

// Whether the norm quantises for the products behind it.
bool norm_quantises(const HcRead& a) {
  return a.residual.extent(2) % kPiece == 0 && !a.down.takes_floats() &&
         (a.inject.rows == 0 || a.inject.takes_floats() ||
          quant::traits(a.inject.type).activation_block ==
              quant::traits(a.down.type).activation_block);
}

void normalise(const HcRead& a, HcParts& p, NativeStream s) {
  const auto blocks = static_cast<unsigned>(a.residual.extent(0) * a.residual.extent(1));
  const size_t shared = static_cast<size_t>(a.residual.extent(2)) * sizeof(float);
  const auto launch = [&](auto kernel, const QuantRows& codes) {
    launch_chained(kernel, blocks, kThreads, shared, s, a, p.normed, codes);
  };
  p.n.quantised = norm_quantises(a);
  if (!p.n.quantised) return launch(hc_norm_kernel<0>, QuantRows{});
  const bool is256 = quant::traits(a.down.type).activation_block == 256;
  if (is256) return launch(hc_norm_kernel<256>, p.n.by256);
  launch(hc_norm_kernel<32>, p.n.by32);
}

}  // namespace

bool hc_read_takes(const HcRead& a) { return a.residual.extent(2) <= kMostWidth; }
Bytes hc_read_scratch(const device::Stream&, const HcRead& a) {
  Carver carver(nullptr);
  carve(a, carver);
  return carver.peak();
}
void hc_read(const HcRead& a, NativeStream s) {
  Carver carver(a.scratch.data());
  HcParts p = carve(a, carver);
  const int64_t rows = a.residual.extent(0);
  normalise(a, p, s);
  ProductList down(p.n, rows, s);
  down.add(a.down, p.lo_raw);
  if (a.inject) down.add(a.inject, a.inj.data());
  down.run();
  if (mixes_at_once(a)) return up_and_mix(a, p, s);
  ProductList up(p.lo, rows, s);
  up.add(a.up, p.m);
  up.run();
  const dim3 grid(blocks_for(a.residual.extent(2), kThreads), static_cast<unsigned>(rows));
  launch_chained(hc_mix_kernel, grid, kThreads, 0, s, a, p.normed, p.m);
}

}  // namespace strata::kernels::gpu
