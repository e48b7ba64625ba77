#include <utility>

#include "strata/base/check.h"
#include "strata/kernels/gpu/activations.cuh"
#include "strata/kernels/gpu/chain.cuh"
#include "strata/kernels/gpu/few.h"
#include "strata/kernels/gpu/products.cuh"

namespace strata::kernels::gpu {
namespace {

constexpr int kWarps = 4, kThreads = 256;

__device__ int64_t row_count(const Activations& a) {
  return a.n_rows == nullptr ? a.max_rows : int64_t{*a.n_rows} * a.rows_each;
}

// A warp 256 values: one block, or eight that four lanes each share.
template <int kBlock>
__global__ void quantise_kernel(Activations a, QuantRows out) {
  chained();
  const int64_t row = blockIdx.x;
  if (row >= row_count(a)) return;
  const int at = (static_cast<int>(blockIdx.y) * kWarps + warp_id()) * kPiece + lane_id() * kEach;
  // All lanes go on: those beyond the row take part in the exchange.
  float x[kEach] = {};
  if (at < a.cols) load_eight(a.source(), row * a.cols + at, x);
  const QuantEight eight = quantise_eight<kBlock>(x);
  if (at < a.cols) keep_eight<kBlock>(eight, row * a.cols + at, out);
}

__global__ void floats_of_kernel(Activations a) {
  chained();
  const int64_t row = blockIdx.x, i = int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  if (row >= row_count(a) || i >= a.cols) return;
  a.floats[row * a.cols + i] = activation(a.source(), row * a.cols + i);
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

void Activations::prepare(bool codes, bool as_floats, NativeStream s) const {
  const dim3 grid(static_cast<unsigned>(max_rows), blocks_for(cols, kPiece * kWarps));
  constexpr int kOfWarps = kWarps * kLanes;
  if (codes && wants32) launch_chained(quantise_kernel<32>, grid, kOfWarps, 0, s, *this, by32);
  if (codes && wants256) launch_chained(quantise_kernel<256>, grid, kOfWarps, 0, s, *this, by256);
  if (as_floats && wants_floats && from != From::kPlain) {
    const dim3 elements(static_cast<unsigned>(max_rows), blocks_for(cols, kThreads));
    launch_chained(floats_of_kernel, elements, kThreads, 0, s, *this);
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

const float* ProductList::floats() const {
  return x_.from == Activations::From::kPlain ? x_.x : x_.floats;
}

ProductArgs ProductList::args_of(const Item& item) const {
  ProductArgs args = item.of;
  args.n_rows = x_.n_rows;
  args.rows_each = x_.rows_each;
  args.cols = x_.cols;
  args.max_entries = x_.max_rows * args.entries_a_row;
  // A row chooses an expert once; with rows named one by one nothing is known.
  args.one_each = args.x_row == nullptr && x_.max_rows == 1;
  args.floats = floats();
  args.x = quant::traits(item.w.type).activation_block == 256 ? x_.by256 : x_.by32;
  return args;
}

void ProductList::gather(int i, ProductArgs& args) {
  const Item& first = item_[static_cast<size_t>(i)];
  for (int k = i; k < n_; ++k) {
    Item& other = item_[static_cast<size_t>(k)];
    if (other.done || other.w.type != first.w.type || other.w.packing != first.w.packing ||
        other.few != first.few || other.of.groups.entry != first.of.groups.entry) {
      continue;
    }
    args.product[static_cast<size_t>(args.n_products++)] = other.product;
    if (k != i) other.done = true;
  }
}

// Float matrices go with the first launch of others.
void ProductList::run_few() {
  FewFloats beside;
  for (int i = 0; i < n_; ++i) {
    Item& item = item_[static_cast<size_t>(i)];
    if (!item.few || !item.w.takes_floats()) continue;
    const auto type = item.w.type == quant::Type::kF32   ? FewFloats::Type::kF32
                      : item.w.type == quant::Type::kF16 ? FewFloats::Type::kF16
                                                         : FewFloats::Type::kBF16;
    beside.job[static_cast<size_t>(beside.n++)] = {item.w.data, item.product.scale, item.product.y,
                                                   item.w.rows, type};
    item.done = true;
  }
  beside.x = floats();
  const auto fill = [&](const Item& item) {
    FewArgs args;
    static_cast<ProductArgs&>(args) = args_of(item);
    args.source = x_.source();
    args.many = rows_ > 1;
    args.quantises = !args.many && !x_.quantised;
    return args;
  };
  for (int i = 0; i < n_; ++i) {
    const Item& item = item_[static_cast<size_t>(i)];
    if (!item.few || item.done) continue;
    FewArgs args = fill(item);
    gather(i, args);
    const bool grouped = args.groups.entry != nullptr;
    if (grouped) {
      args.n_y = static_cast<int>(x_.max_rows * args.entries_a_row);
      args.top_k = static_cast<int>(args.n_y / rows_);
    } else {
      args.id = nullptr;
      args.floats_beside = std::exchange(beside, {.x = beside.x});
    }
    item_[static_cast<size_t>(i)].done = true;
    launch_few(item.w.type, args, stream_);
  }
  if (beside.n == 0) return;
  FewArgs args = fill({.of = {}});
  args.floats_beside = beside;
  launch_few(quant::Type::kF32, args, stream_);
}

void ProductList::run() {
  bool codes = false, as_floats = false;
  for (int i = 0; i < n_; ++i) {
    Item& item = item_[static_cast<size_t>(i)];
    const bool grouped = item.of.groups.entry != nullptr, of_floats = item.w.takes_floats();
    item.few = of_floats ? !grouped && few_takes_floats(item.w, floats(), rows_)
                         : (!grouped || item.of.id != nullptr) && few_takes(item.w, rows_);
    codes |= !of_floats && (!item.few || rows_ > 1);
    as_floats |= of_floats;
  }
  x_.prepare(codes && !x_.quantised, as_floats, stream_);
  run_few();
  for (int i = 0; i < n_; ++i) {
    const Item& item = item_[static_cast<size_t>(i)];
    if (item.done) continue;
    ProductArgs args = args_of(item);
    gather(i, args);
    launch_products(item.w.type, item.w.packing, args, stream_);
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
