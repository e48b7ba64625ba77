#include "strata/kernels/cpu/cpu.h"
#include "strata/quant/canonical.h"
#include "strata/quant/types.h"

namespace strata::kernels::cpu {

WeightRows rows_of(const Weight& w) {
  return {.data = w.data,
          .type = w.type,
          .row_bytes = static_cast<size_t>(quant::row_bytes(w.type, w.cols)),
          .cols = w.cols,
          .packing = w.packing};
}

double matmul_ns(const Weight& w, int64_t rows, int n_rows) {
  // Streaming weights at about 15 bytes/ns, and for several rows about 50 products/ns.
  const double bytes =
      static_cast<double>(rows) * static_cast<double>(quant::row_bytes(w.type, w.cols));
  return bytes / 15.0 +
         (n_rows - 1) * static_cast<double>(rows) * static_cast<double>(w.cols) / 50.0;
}

void Activations::want(const Weight& w, Carver& carver) {
  if (w.takes_floats()) return;
  const int block = quant::activation_block(w.type);
  QuantRows& rows = block == 256 ? by256_ : by32_;
  if (rows.block == 0) {
    std::byte* at =
        carver.take<std::byte>(static_cast<int64_t>(quant_rows_bytes(n_rows_, cols_, block)));
    if (at) rows = place_quant_rows(n_rows_, cols_, block, at);
    rows.block = block;
  }
  if (takes_crossed(w.type) && !rows.crossed) {
    rows.crossed = carver.take<int8_t>(int64_t{n_rows_} * cols_);
  }
}

void Activations::quantise(int first_row, int end_row) const {
  if (by32_.block) quantize_rows(float_.x, float_.stride, first_row, end_row, by32_);
  if (by256_.block) quantize_rows(float_.x, float_.stride, first_row, end_row, by256_);
}

void Activations::quantise(ThreadPool& pool) const {
  if (!by32_.block && !by256_.block) return;
  pool.parallel_for(Loop{.n_items = n_rows_, .ns_per_item = cols_ * 0.15},
                    [&](int64_t begin, int64_t end) {
                      quantise(static_cast<int>(begin), static_cast<int>(end));
                    });
}

void Activations::multiply(const Weight& w, int first, int end, std::span<const int32_t> index,
                           const OutRows& out) const {
  if (w.takes_floats()) {
    matmul_float(rows_of(w), first, end, float_, index, out);
  } else {
    cpu::matmul(rows_of(w), first, end, quant::activation_block(w.type) == 256 ? by256_ : by32_,
                index, out);
  }
  if (!w.scale) return;
  const int n = index.empty() ? n_rows_ : static_cast<int>(index.size());
  for (int i = 0; i < n; ++i) {
    float* y = out.y + (out.row ? out.row[i] : i) * out.stride;
    for (int r = first; r < end; ++r) y[r] = y[r] * *w.scale;
  }
}

}  // namespace strata::kernels::cpu
