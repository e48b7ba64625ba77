#include "strata/base/check.h"
#include "strata/kernels/gpu/products.cuh"

namespace strata::kernels::gpu {
namespace {

// Values of a file at any address.
struct F32 {
  static constexpr int kBytes = 4;
  STRATA_MEMBER static float at(const uint8_t* p) { return bits_to_float(load_word(p)); }
};
STRATA_FN uint16_t load_two(const uint8_t* p) {
  if (reinterpret_cast<uintptr_t>(p) % 2 == 0) return __ldg(reinterpret_cast<const uint16_t*>(p));
  return static_cast<uint16_t>(p[0] | p[1] << 8);
}
struct F16 {
  static constexpr int kBytes = 2;
  STRATA_MEMBER static float at(const uint8_t* p) { return load_half(load_two(p)); }
};
struct BF16 {
  static constexpr int kBytes = 2;
  STRATA_MEMBER static float at(const uint8_t* p) {
    return bits_to_float(static_cast<uint32_t>(load_two(p)) << 16);
  }
};

constexpr int kWarps = 4, kWeightRowsOfMany = 2;
// Few: a matrix of floats has few rows, so the blocks of threads come from the entries.
constexpr int kFloatEntriesEach = 8;

// A warp kWeightRows rows of the matrix against kRows of the activations, in its 32 lanes.
template <class T, int kRows, int kWeightRows>
__device__ void float_rows(const ProductArgs& a, const Product& p, const Work& work, int weight_row,
                           int first) {
  const float* x[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    x[i] = a.floats + row_of(a, work, min(first + i, work.n_entries - 1)) * a.cols;
  }
  float acc[kWeightRows][kRows] = {};
  const int64_t row_bytes = int64_t{a.cols} * T::kBytes;
  const uint8_t* w[kWeightRows];
#pragma unroll
  for (int k = 0; k < kWeightRows; ++k) {
    w[k] = work.data + row_bytes * min(weight_row + k, p.rows - 1);
  }
#pragma unroll 8
  for (int at = lane_id(); at < a.cols; at += kLanes) {
    float value[kWeightRows];
#pragma unroll
    for (int k = 0; k < kWeightRows; ++k) value[k] = T::at(w[k] + int64_t{at} * T::kBytes);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float xi = x[i][at];
#pragma unroll
      for (int k = 0; k < kWeightRows; ++k) acc[k][i] = __builtin_fmaf(value[k], xi, acc[k][i]);
    }
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int k = 0; k < kWeightRows; ++k) {
      const float sum = lane_tree(acc[k][i]);
      if (lane_id() != 0 || first + i >= work.n_entries || weight_row + k >= p.rows) continue;
      const int64_t entry = work.entry == nullptr ? first + i : work.entry[first + i];
      p.y[entry * p.rows + weight_row + k] = sum * (work.scale ? *work.scale : 1.0f);
    }
  }
}

template <class T, int kWeightRows>
__global__ void __launch_bounds__(kWarps* kLanes) floats_kernel(ProductArgs a) {
  constexpr int kRowsOfBlock = kWarps * kWeightRows;
  int tile = blockIdx.x, which = 0;
  while (tile >= (a.product[which].rows + kRowsOfBlock - 1) / kRowsOfBlock) {
    tile -= (a.product[which++].rows + kRowsOfBlock - 1) / kRowsOfBlock;
  }
  const Product& p = a.product[which];
  const int weight_row = tile * kRowsOfBlock + warp_id() * kWeightRows;
  if (weight_row >= p.rows) return;
  const int n_active = a.groups.entry == nullptr ? 1 : *a.groups.n_active;
  for (int active = blockIdx.y; active < n_active; active += gridDim.y) {
    const Work work = work_of(a, p, active);
    if (work.data == nullptr) continue;
    for (int first = blockIdx.z * kRowsAtOnce; first < work.n_entries;
         first += gridDim.z * kRowsAtOnce) {
      if (first + 1 == work.n_entries) {
        float_rows<T, 1, kWeightRows>(a, p, work, weight_row, first);
      } else {
        float_rows<T, kRowsAtOnce, kWeightRows>(a, p, work, weight_row, first);
      }
    }
  }
}

template <class T>
void launch(const ProductArgs& a, NativeStream s) {
  constexpr int kThreads = kWarps * kLanes;
  if (a.one_each) {
    floats_kernel<T, 1><<<products_grid(a, kWarps, 1), kThreads, 0, s>>>(a);
  } else {
    const dim3 grid = products_grid(a, kWarps * kWeightRowsOfMany, kFloatEntriesEach);
    floats_kernel<T, kWeightRowsOfMany><<<grid, kThreads, 0, s>>>(a);
  }
}

}  // namespace

void launch_floats(quant::Type type, const ProductArgs& a, NativeStream s) {
  switch (type) {
    case quant::Type::kF32:
      return launch<F32>(a, s);
    case quant::Type::kF16:
      return launch<F16>(a, s);
    case quant::Type::kBF16:
      return launch<BF16>(a, s);
    default:
      STRATA_CHECK(false);
  }
}

}  // namespace strata::kernels::gpu
