#include "strata/kernels/cpu/matmul_plain.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "strata/quant/tiles.h"

namespace strata::kernels::cpu {
namespace {

constexpr int kSegments = 8;

// The blocks of one weight row, wherever they lie.
class RowBlocks {
 public:
  RowBlocks(const quant::TypeTraits& t, const DotArgs& a, int row) : t_(t) {
    const auto* w = reinterpret_cast<const std::byte*>(a.w);
    if (!a.tiles) {
      row_ = w + static_cast<size_t>(row) * a.w_row_bytes;
      return;
    }
    form_ = quant::tile_form(t.type);
    n_blocks_ = a.cols / t.block_values;
    lane_ = row % quant::kTileRows;
    row_ = w + static_cast<size_t>(row - lane_) * a.w_row_bytes;
  }
  // Block b, until the next call.
  const std::byte* operator[](int b) {
    if (!form_) return row_ + static_cast<ptrdiff_t>(b) * t_.block_bytes;
    quant::block_of_tile(form_, n_blocks_, row_, b, lane_, block_);
    return block_;
  }

 private:
  static constexpr size_t kMaxBlockBytes = 256;

  const quant::TypeTraits& t_;
  const std::byte* row_;
  quant::TileForm form_;
  int n_blocks_ = 0, lane_ = 0;
  std::byte block_[kMaxBlockBytes];
};

float dot_terms(const quant::TypeTraits& t, RowBlocks& blocks, int cols, const int8_t* q,
                const float* scale) {
  const int block = t.activation_block;
  const int n_blocks = cols / block;
  const int terms_a_block = t.block_values / t.term_values;
  quant::Term term;
  float result = 0;
  for (int s = 0; s < kSegments; ++s) {
    const int end = static_cast<int>(int64_t{s + 1} * n_blocks / kSegments);
    float acc = 0;
    for (int j = static_cast<int>(int64_t{s} * n_blocks / kSegments) * block; j < end * block;
         j += t.term_values) {
      t.unpack(blocks[j / t.block_values], j / t.term_values % terms_a_block, term);
      int32_t sum = 0;
      int32_t min = 0;
      for (int i = 0; i < t.term_values; ++i) {
        const int g = i / quant::Term::kGroup;
        sum += term.scale[g] * term.code[i] * q[j + i];
        if (t.has_min) min += term.min[g] * q[j + i];
      }
      const float dx = scale[j / block];
      acc = std::fma(static_cast<float>(sum), term.d * dx, acc);
      if (t.has_min) acc = std::fma(-static_cast<float>(min), term.dmin * dx, acc);
    }
    result = s == 0 ? acc : result + acc;
  }
  return result;
}

float dot_float_row(const quant::TypeTraits& t, const std::byte* weight_row, int cols,
                    const float* x) {
  constexpr int kLanes = 32;
  float lane[kLanes] = {};
  float w[kLanes];
  for (int i = 0; i < cols; i += kLanes) {
    const int n = std::min(kLanes, cols - i);
    t.decode_floats(weight_row + static_cast<ptrdiff_t>(i) * t.block_bytes, static_cast<size_t>(n),
                    w);
    for (int l = 0; l < n; ++l) lane[l] = std::fma(w[l], x[i + l], lane[l]);
  }
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) lane[l] += lane[l + width];
  }
  return lane[0];
}

}  // namespace

void multiply_plainly(const quant::TypeTraits& t, const DotArgs& a) {
  for (int o = a.first_row; o < a.end_row; ++o) {
    RowBlocks blocks(t, a, o);
    for (int i = 0; i < a.n_rows; ++i) {
      const int64_t xr = a.x_index != nullptr ? a.x_index[i] : i;
      const int64_t yr = a.y_index != nullptr ? a.y_index[i] : i;
      a.y[yr * a.y_stride + o] = t.type_class == quant::TypeClass::kFloat
                                     ? dot_float_row(t, blocks[0], a.cols, a.x + xr * a.x_stride)
                                     : dot_terms(t, blocks, a.cols, a.q + xr * a.cols,
                                                 a.scale + xr * (a.cols / t.activation_block));
    }
  }
}

}  // namespace strata::kernels::cpu
