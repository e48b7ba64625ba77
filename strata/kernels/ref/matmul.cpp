#include <algorithm>
#include <vector>

#include "strata/kernels/ref/ref.h"
#include "strata/quant/canonical.h"
#include "strata/quant/decode.h"
#include "strata/quant/tiles.h"

namespace strata::kernels::ref {

namespace {

// Calls use(r, row r as a file has it) for each weight row.
template <class Use>
void for_rows(const Weight& w, const Use& use) {
  const Bytes row_bytes = quant::row_bytes(w.type, w.cols);
  std::vector<std::byte> untiled(w.packing == Packing::kTiles ? row_bytes : 0);
  for (int r = 0; r < w.rows; ++r) {
    if (w.packing == Packing::kTiles) {
      const int in_tile = r % quant::kTileRows;
      quant::row_of_tile(w.type, w.cols, w.data + static_cast<size_t>(r - in_tile) * row_bytes,
                         in_tile, untiled.data());
      use(r, untiled.data());
    } else {
      use(r, w.data + static_cast<size_t>(r) * row_bytes);
    }
  }
}

}  // namespace

void multiply_row(const Weight& w, const float* x, float* y) {
  const float scale = w.scale ? *w.scale : 1.0f;
  if (w.takes_floats()) {
    std::vector<float> decoded(static_cast<size_t>(w.cols));
    for_rows(w, [&](int r, const std::byte* row) {
      quant::decode(w.type, row, decoded);
      y[r] = quant::dot_float(decoded.data(), x, w.cols) * scale;
    });
    return;
  }
  const quant::QuantRow q = quant::quantize_row(x, w.cols, quant::activation_block(w.type));
  for_rows(w, [&](int r, const std::byte* row) {
    y[r] = quant::dot_canonical(w.type, row, w.cols, q) * scale;
  });
}

void matmul(const MatMul& a) {
  for (int row = 0; row < *a.n_rows; ++row) {
    for (int i = 0; i < a.n_out; ++i) multiply_row(a.out[i].w, a.x.row(row), a.out[i].y.row(row));
  }
}

namespace {

void decode_row(const Weight& table, int64_t index, float* out) {
  quant::decode(table.type,
                table.data + static_cast<size_t>(index) * quant::row_bytes(table.type, table.cols),
                {out, static_cast<size_t>(table.cols)});
}

}  // namespace

void embed(const Embed& a) {
  for (int row = 0; row < *a.n_rows; ++row) {
    for (int c = 0; c < a.copies; ++c) {
      decode_row(a.table, a.id[row], a.out.row(row) + static_cast<int64_t>(c) * a.table.cols);
    }
  }
}

void gather(const Gather& a) {
  const int64_t heads = a.index.extent(1);
  for (int row = 0; row < *a.n_rows; ++row) {
    for (int64_t h = 0; h < heads; ++h) {
      decode_row(a.table, a.index.row(row)[h], a.out.row(row) + h * a.table.cols);
    }
  }
}

void copy_rows(const CopyRows& a) {
  const int64_t width = a.x.size() / a.x.extent(0);
  for (int i = 0; i < *a.n_rows; ++i) {
    std::copy_n(a.x.row(a.index[i]), width, a.out.row(i));
  }
}

void scatter_rows(const ScatterRows& a) {
  const int64_t width = a.x.size() / a.x.extent(0);
  for (int i = 0; i < *a.n_rows; ++i) {
    std::copy_n(a.x.row(i), width, a.out.row(a.index[i]));
  }
}

void zero(const Zero& a) { std::fill_n(a.out.data(), a.out.size(), 0.0f); }

}  // namespace strata::kernels::ref
