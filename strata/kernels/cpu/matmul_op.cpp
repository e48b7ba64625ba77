#include <algorithm>

#include "strata/kernels/cpu/cpu.h"
#include "strata/quant/decode.h"

namespace strata::kernels::cpu {
namespace {

// Weight rows that are given out together: a multiple of every kernel's row group.
constexpr int kUnit = 16;

Activations activations(const MatMul& a, int n_rows, Carver& carver) {
  Activations x(a.x.data(), a.x.extent(1), n_rows, static_cast<int>(a.x.extent(1)));
  for (int i = 0; i < a.n_out; ++i) x.want(a.out[i].w, carver);
  return x;
}

void decode_row(const Weight& table, int64_t index, float* out) {
  quant::decode(table.type,
                table.data + static_cast<size_t>(index) * quant::row_bytes(table.type, table.cols),
                {out, static_cast<size_t>(table.cols)});
}

}  // namespace

Bytes matmul_scratch(const device::Stream&, const MatMul& a) {
  Carver carver(nullptr);
  activations(a, static_cast<int>(a.x.extent(0)), carver);
  return carver.peak();
}

void matmul_op(const MatMul& a, ThreadPool& pool) {
  Carver carver(a.scratch.data());
  const int n = *a.n_rows;
  const Activations x = activations(a, n, carver);
  x.quantise(pool);

  // The matrices one after the other, in units, as one loop.
  int64_t units = 0;
  double ns = 0;
  for (int i = 0; i < a.n_out; ++i) {
    units += (a.out[i].w.rows + kUnit - 1) / kUnit;
    ns += matmul_ns(a.out[i].w, a.out[i].w.rows, n);
  }
  pool.parallel_for(Loop{.n_items = units,
                         .ns_per_item = ns / static_cast<double>(units),
                         .share = pool.by_place()},
                    [&](int64_t begin, int64_t end) {
                      int64_t base = 0;
                      for (int i = 0; i < a.n_out; ++i) {
                        const Weight& w = a.out[i].w;
                        const int64_t here = (w.rows + kUnit - 1) / kUnit;
                        const int64_t first = std::max(begin - base, int64_t{0}) * kUnit;
                        const int64_t last = std::min<int64_t>((end - base) * kUnit, w.rows);
                        if (first < last) {
                          x.multiply(w, static_cast<int>(first), static_cast<int>(last), {},
                                     {.y = a.out[i].y.data(), .stride = w.rows});
                        }
                        base += here;
                      }
                    });
}

void embed(const Embed& a, ThreadPool& pool) {
  pool.parallel_for(Loop{.n_items = *a.n_rows, .ns_per_item = a.table.cols * 0.5},
                    [&](int64_t begin, int64_t end) {
                      for (int64_t row = begin; row < end; ++row) {
                        float* out = a.out.row(row);
                        decode_row(a.table, a.id[row], out);
                        for (int c = 1; c < a.copies; ++c) {
                          std::copy_n(out, a.table.cols,
                                      out + static_cast<int64_t>(c) * a.table.cols);
                        }
                      }
                    });
}

void gather(const Gather& a, ThreadPool& pool) {
  const int64_t heads = a.index.extent(1);
  pool.parallel_for(Loop{.n_items = *a.n_rows, .ns_per_item = static_cast<double>(heads) * 200},
                    [&](int64_t begin, int64_t end) {
                      for (int64_t row = begin; row < end; ++row) {
                        for (int64_t h = 0; h < heads; ++h) {
                          decode_row(a.table, a.index.row(row)[h],
                                     a.out.row(row) + h * a.table.cols);
                        }
                      }
                    });
}

void copy_rows(const CopyRows& a, ThreadPool&) {
  const int64_t width = a.x.size() / a.x.extent(0);
  for (int i = 0; i < *a.n_rows; ++i) std::copy_n(a.x.row(a.index[i]), width, a.out.row(i));
}

void scatter_rows(const ScatterRows& a, ThreadPool& pool) {
  const int64_t width = a.x.size() / a.x.extent(0);
  pool.parallel_for(Loop{.n_items = *a.n_rows, .ns_per_item = static_cast<double>(width) * 0.2},
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        std::copy_n(a.x.row(i), width, a.out.row(a.index[i]));
                      }
                    });
}

}  // namespace strata::kernels::cpu
