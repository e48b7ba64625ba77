#include "strata/kernels/ops/contract.h"

#include <string>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/quant/tiles.h"

namespace strata::kernels {
namespace {

constexpr uintptr_t kTileAlign = 64;

}  // namespace

void Contract::matrix(const Weight& w, int64_t rows, int64_t cols, const char* demand) const {
  bool fits = w.rows == rows && w.cols == cols && w.cols % quant::traits(w.type).block_values == 0;
  if (w.packing == Packing::kTiles) {
    fits = fits && w.rows % quant::kTileRows == 0 && aligned(w.data, kTileAlign);
  }
  if (!fits) fail(demand, w.data, Shape{.rank = 2, .extent = {w.rows, w.cols}});
}

bool Contract::overlap(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes) {
  if (a == nullptr || b == nullptr) return false;
  const auto first = reinterpret_cast<uintptr_t>(a), second = reinterpret_cast<uintptr_t>(b);
  return first < second + static_cast<uintptr_t>(b_bytes) &&
         second < first + static_cast<uintptr_t>(a_bytes);
}

void Contract::fail(const char* demand) const {
  throw Error(ErrorCode::kInternal, format("op {}: wanted: {}", op_, demand));
}

void Contract::fail(const char* demand, const void* at, const Shape& shape) const {
  std::string found;
  for (int i = 0; i < shape.rank; ++i) {
    found += format("{}{}", i == 0 ? "" : ", ", shape.extent[i]);
  }
  throw Error(ErrorCode::kInternal, format("op {}: wanted: {}; there is [{}] at {:#x}", op_, demand,
                                           found, reinterpret_cast<uintptr_t>(at)));
}

}  // namespace strata::kernels
