#include <algorithm>

#include "strata/kernels/cpu/cpu.h"

namespace strata::kernels::cpu {
namespace {

constexpr int kUnit = 16;

struct HcScratch {
  float *n, *lo, *m;
  Activations wide, low;  // the normed streams; the low-rank row
};

HcScratch carve(const HcRead& a, int n_rows, Carver& carver) {
  const int cols = a.down.cols, rank = a.down.rows;
  float* n = carver.take<float>(static_cast<int64_t>(n_rows) * cols);
  float* lo = carver.take<float>(static_cast<int64_t>(n_rows) * rank);
  float* m = carver.take<float>(static_cast<int64_t>(n_rows) * cols);
  HcScratch s{n, lo, m, Activations(n, cols, n_rows, cols), Activations(lo, rank, n_rows, rank)};
  s.wide.want(a.down, carver);
  if (a.inject) s.wide.want(a.inject, carver);
  s.low.want(a.up, carver);
  return s;
}

}  // namespace

Bytes hc_read_scratch(const device::Stream&, const HcRead& a) {
  Carver carver(nullptr);
  carve(a, static_cast<int>(a.residual.extent(0)), carver);
  return carver.peak();
}

void hc_read(const HcRead& a, ThreadPool& pool) {
  const RowFns& fns = row_fns();
  const int n_rows = *a.n_rows, cols = a.down.cols, rank = a.down.rows;
  const int streams = static_cast<int>(a.residual.extent(1));
  const int width = static_cast<int>(a.residual.extent(2));
  const float inverse = 1.0f / static_cast<float>(streams);
  Carver carver(a.scratch.data());
  const HcScratch s = carve(a, n_rows, carver);

  pool.parallel_for(
      Loop{.n_items = n_rows, .ns_per_item = cols * 0.4}, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          fns.group_norm(a.residual.row(row), a.norm, streams, width, a.eps, s.n + row * cols);
          s.wide.quantise(static_cast<int>(row), static_cast<int>(row) + 1);
        }
      });

  const int64_t units = (rank + kUnit - 1) / kUnit;
  pool.parallel_for(
      Loop{.n_items = units + (a.inject ? 1 : 0), .ns_per_item = matmul_ns(a.down, kUnit, n_rows)},
      [&](int64_t begin, int64_t end) {
        const int first = static_cast<int>(begin) * kUnit;
        const int last = std::min(static_cast<int>(std::min(end, units)) * kUnit, rank);
        if (first < last) s.wide.multiply(a.down, first, last, {}, {.y = s.lo, .stride = rank});
        if (end > units) {
          s.wide.multiply(a.inject, 0, a.inject.rows, {},
                          {.y = a.inj.data(), .stride = a.inject.rows});
        }
      });

  pool.parallel_for(Loop{.n_items = n_rows, .ns_per_item = rank * 0.5},
                    [&](int64_t begin, int64_t end) {
                      for (int64_t row = begin; row < end; ++row) {
                        fns.silu_scaled(s.lo + row * rank, rank, inverse);
                        s.low.quantise(static_cast<int>(row), static_cast<int>(row) + 1);
                        if (a.inject) fns.inject_gate(a.inj.row(row), streams, inverse);
                      }
                    });

  // A piece of columns: its rows of `up` in every stream, then the mean over the streams.
  constexpr int kPiece = 64;
  const int64_t pieces = (width + kPiece - 1) / kPiece;
  pool.parallel_for(
      Loop{.n_items = pieces, .ns_per_item = streams * matmul_ns(a.up, kPiece, n_rows)},
      [&](int64_t begin, int64_t end) {
        const int first = static_cast<int>(begin) * kPiece;
        const int last = std::min(static_cast<int>(end) * kPiece, width);
        for (int k = 0; k < streams; ++k) {
          s.low.multiply(a.up, k * width + first, k * width + last, {}, {.y = s.m, .stride = cols});
        }
        for (int row = 0; row < n_rows; ++row) {
          const int64_t at = static_cast<int64_t>(row) * cols;
          fns.hc_mix(s.m + at, s.n + at, streams, width, first, last, a.u.row(row));
        }
      });
}

void hc_write(const HcWrite& a, ThreadPool& pool) {
  const int streams = static_cast<int>(a.residual.extent(1));
  const int width = static_cast<int>(a.residual.extent(2));
  pool.parallel_for(Loop{.n_items = *a.n_rows, .ns_per_item = streams * width * 0.1},
                    [&](int64_t begin, int64_t end) {
                      for (int64_t row = begin; row < end; ++row) {
                        row_fns().hc_write(a.inj.row(row), a.y.row(row), streams, width,
                                           a.residual.row(row));
                      }
                    });
}

void draft_input(const DraftInput& a, ThreadPool& pool) {
  const RowFns& fns = row_fns();
  const int streams = static_cast<int>(a.residual.extent(1));
  const int width = static_cast<int>(a.residual.extent(2));
  pool.parallel_for(
      Loop{.n_items = *a.n_rows, .ns_per_item = streams * width * 0.4},
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const float* e = a.e.row(row);
          const float* h = a.residual.row(row);
          const float re = fns.inverse_rms(e, width, a.eps);
          const float full = a.per_stream ? 0 : fns.inverse_rms(h, streams * width, a.eps);
          for (int s = 0; s < streams; ++s) {
            const float* hs = h + static_cast<int64_t>(s) * width;
            float* out = a.out.row(row) + static_cast<int64_t>(s) * 2 * width;
            fns.scale_by(e, re, a.enorm, width, out);
            fns.scale_by(hs, a.per_stream ? fns.inverse_rms(hs, width, a.eps) : full,
                         a.hnorm + static_cast<int64_t>(s) * width, width, out + width);
          }
        }
      });
}

}  // namespace strata::kernels::cpu
