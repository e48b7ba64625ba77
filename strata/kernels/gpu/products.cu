#include "strata/base/check.h"
#include "strata/kernels/gpu/products.cuh"

namespace strata::kernels::gpu {
namespace {

constexpr int kWarps = 4, kThreads = 256;
constexpr int kPiece = 256, kEach = kPiece / kLanes;  // values of a warp, of a lane

// Value i of a row of activations.
__device__ float activation(const Activations& a, int64_t i) {
  switch (a.from) {
    case Activations::From::kPlain:
      return a.x[i];
    case Activations::From::kSilu:
      return silu_c(a.x[i] * a.factor);
    case Activations::From::kSwiGlu:
      return silu_c(a.x[i]) * a.y[i];
  }
  return 0;
}

__device__ int64_t row_count(const Activations& a) {
  return a.n_rows == nullptr ? a.max_rows : int64_t{*a.n_rows} * a.rows_each;
}

// A warp 256 values: one block, or eight that four lanes each share. Rule 1 of quant/canonical.h.
template <int kBlock>
__global__ void quantise_kernel(Activations a, QuantRows out) {
  constexpr int kShare = kBlock / kEach;  // lanes that share a block
  const int64_t row = blockIdx.x;
  if (row >= row_count(a)) return;
  const int at = (static_cast<int>(blockIdx.y) * kWarps + warp_id()) * kPiece + lane_id() * kEach;
  // All lanes go on: those beyond the row take part in the exchange.
  const bool inside = at < a.cols;
  const int64_t first = row * a.cols + at;
  float x[kEach] = {};
  float amax = 0;
  bool finite = true;
  if (inside) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      x[i] = activation(a, first + i);
      const float size = bits_to_float(float_to_bits(x[i]) & 0x7fffffffU);
      finite = finite && size < __builtin_huge_valf();
      amax = size > amax ? size : amax;
    }
  }
  int broken = finite ? 0 : 1;
#pragma unroll
  for (int width = kShare / 2; width > 0; width /= 2) {
    const float other = from_lane_xor(amax, width);
    amax = other > amax ? other : amax;
    broken |= from_lane_xor(broken, width);
  }
  const bool empty = broken != 0 || amax < 0x1p-100f;
  const float inverse = empty ? 0.0f : 127.0f / amax;
  uint32_t words[2] = {0, 0};
  int sum = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const float rounded = empty ? 0.0f : __builtin_rintf(x[i] * inverse);
    const float held = rounded < -127.0f ? -127.0f : (rounded > 127.0f ? 127.0f : rounded);
    const int q = static_cast<int>(held);
    sum += q;
    words[i / 4] |= (static_cast<uint32_t>(q) & 255U) << (8 * (i % 4));
  }
  sum += from_lane_xor(sum, 1);
  if (!inside) return;
  *reinterpret_cast<uint2*>(out.q + first) = uint2{words[0], words[1]};
  if (lane_id() % 2 == 0) out.sums[first / 16] = static_cast<int16_t>(sum);
  if (lane_id() % kShare == 0) {
    out.scale[first / kBlock] =
        broken != 0 ? bits_to_float(0x7FC00000U) : (amax < 0x1p-100f ? 0.0f : amax / 127.0f);
  }
}

__global__ void floats_of_kernel(Activations a) {
  const int64_t row = blockIdx.x, i = int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  if (row >= row_count(a) || i >= a.cols) return;
  a.floats[row * a.cols + i] = activation(a, row * a.cols + i);
}

QuantRows carve_rows(int64_t rows, int cols, int block, Carver& carver) {
  const int64_t n = rows * cols;
  return {carver.take<int8_t>(n), carver.take<float>(n / block), carver.take<int16_t>(n / 16)};
}

}  // namespace

void Activations::want(const Weight& w, Carver& carver) {
  if (w.takes_floats()) {
    wants_floats = true;
    if (from != From::kPlain && floats == nullptr) floats = carver.take<float>(max_rows * cols);
    return;
  }
  const bool is256 = quant::traits(w.type).activation_block == 256;
  bool& wanted = is256 ? wants256 : wants32;
  if (wanted) return;
  wanted = true;
  (is256 ? by256 : by32) = carve_rows(max_rows, cols, is256 ? 256 : 32, carver);
}

void Activations::prepare(NativeStream s) const {
  const dim3 grid(static_cast<unsigned>(max_rows), blocks_for(cols, kPiece * kWarps));
  if (wants32) quantise_kernel<32><<<grid, kWarps * kLanes, 0, s>>>(*this, by32);
  if (wants256) quantise_kernel<256><<<grid, kWarps * kLanes, 0, s>>>(*this, by256);
  if (wants_floats && from != From::kPlain) {
    const dim3 elements(static_cast<unsigned>(max_rows), blocks_for(cols, kThreads));
    floats_of_kernel<<<elements, kThreads, 0, s>>>(*this);
  }
}

void ProductList::add(const Weight& w, float* y) {
  STRATA_CHECK(n_ < ProductArgs::kMost);
  item_[static_cast<size_t>(n_++)] = {
      .w = w, .product = {.data = w.data, .scale = w.scale, .y = y, .rows = w.rows}};
}

void ProductList::add(const Weight& w, const float* scales, int part, float* y,
                      const ProductArgs& of) {
  STRATA_CHECK(n_ < ProductArgs::kMost);
  item_[static_cast<size_t>(n_++)] = {
      .w = w, .product = {.scale = scales, .y = y, .rows = w.rows, .part = part}, .of = of};
}

void ProductList::run() {
  for (int i = 0; i < n_; ++i) {
    const Item& first = item_[static_cast<size_t>(i)];
    if (first.done) continue;
    ProductArgs args = first.of;
    args.n_rows = x_.n_rows;
    args.rows_each = x_.rows_each;
    args.cols = x_.cols;
    args.max_entries = x_.max_rows * args.entries_a_row;
    // A row chooses an expert once; with rows named one by one nothing is known.
    args.one_each = args.x_row == nullptr && x_.max_rows == 1;
    const bool floats = first.w.takes_floats();
    if (floats) {
      args.floats = x_.from == Activations::From::kPlain ? x_.x : x_.floats;
    } else {
      args.x = quant::traits(first.w.type).activation_block == 256 ? x_.by256 : x_.by32;
    }
    // With the others of its type, packing and groups.
    for (int k = i; k < n_; ++k) {
      Item& other = item_[static_cast<size_t>(k)];
      if (other.done || other.w.type != first.w.type || other.w.packing != first.w.packing ||
          other.of.groups.entry != first.of.groups.entry) {
        continue;
      }
      args.product[static_cast<size_t>(args.n_products++)] = other.product;
      if (k != i) other.done = true;
    }
    launch_products(first.w.type, first.w.packing, args, stream_);
  }
}

void launch_products(quant::Type type, Packing packing, const ProductArgs& args, NativeStream s) {
  switch (type) {
    case quant::Type::kF32:
    case quant::Type::kF16:
    case quant::Type::kBF16:
      return launch_floats(type, args, s);
    case quant::Type::kQ2_K:
    case quant::Type::kQ3_K:
    case quant::Type::kQ4_K:
    case quant::Type::kQ5_K:
    case quant::Type::kQ6_K:
      return launch_k(type, packing, args, s);
    default:
      if (quant::traits(type).activation_block == 256) return launch_grids(type, packing, args, s);
      return launch_blocks32(type, packing, args, s);
  }
}

}  // namespace strata::kernels::gpu
