#include <algorithm>
#include <vector>

#include "strata/kernels/ref/ref.h"
#include "strata/quant/canonical.h"
#include "strata/quant/decode.h"

namespace strata::kernels::ref {

void multiply_row(const Weight& w, const float* x, float* y) {
  const Bytes row_bytes = quant::row_bytes(w.type, w.cols);
  const float scale = w.scale ? *w.scale : 1.0f;
  if (w.takes_floats()) {
    std::vector<float> row(static_cast<size_t>(w.cols));
    for (int r = 0; r < w.rows; ++r) {
      quant::decode(w.type, w.data + static_cast<size_t>(r) * row_bytes, row);
      y[r] = quant::dot_float(row.data(), x, w.cols) * scale;
    }
    return;
  }
  const quant::QuantRow q = quant::quantize_row(x, w.cols, quant::activation_block(w.type));
  for (int r = 0; r < w.rows; ++r) {
    y[r] = quant::dot_canonical(w.type, w.data + static_cast<size_t>(r) * row_bytes, w.cols, q) *
           scale;
  }
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

void zero(const Zero& a) { std::fill_n(a.out.data(), a.out.size(), 0.0f); }

}  // namespace strata::kernels::ref
