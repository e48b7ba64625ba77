#include <algorithm>

#include "strata/kernels/cpu/cpu.h"

namespace strata::kernels::cpu {
namespace {

constexpr int kTile = 64;     // value columns given out together
constexpr int kMaxKey = 256;  // of the row functions' buffers
// A layer's state from here on is no longer in a cache when the next token needs it.
constexpr int64_t kLargeState = 1 << 20;

struct GdnScratch {
  float* qk;            // [rows, 2 * key_heads * dk] normalised
  float *decay, *beta;  // [rows, value_heads]
};

GdnScratch carve(const Gdn& a, int64_t n_rows, Carver& carver) {
  return {carver.take<float>(n_rows * 2 * a.key_heads * a.dk),
          carver.take<float>(n_rows * a.value_heads), carver.take<float>(n_rows * a.value_heads)};
}

}  // namespace

Bytes gdn_scratch(const device::Stream&, const Gdn& a) {
  Carver carver(nullptr);
  carve(a, a.qkv.extent(0), carver);
  return carver.peak();
}

bool gdn_takes(const Gdn& a) { return a.dk <= kMaxKey; }

void gdn(const Gdn& a, ThreadPool& pool) {
  const RowFns& fns = row_fns();
  const int dk = a.dk, dv = a.dv, n_rows = *a.rows.n_rows;
  const int64_t qk_width = 2 * static_cast<int64_t>(a.key_heads) * dk;
  const int64_t v_width = static_cast<int64_t>(a.value_heads) * dv;
  Carver carver(a.scratch.data());
  const GdnScratch s = carve(a, n_rows, carver);

  const float q_scale = 1.0f / __builtin_sqrtf(static_cast<float>(dk));
  pool.parallel_for(
      Loop{.n_items = n_rows, .ns_per_item = static_cast<double>(qk_width) * 0.3},
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          for (int h = 0; h < 2 * a.key_heads; ++h) {
            const float scale = h < a.key_heads ? q_scale : 1.0f;
            fns.l2_norm(a.qkv.row(row) + h * dk, dk, a.eps, scale, s.qk + row * qk_width + h * dk);
          }
          fns.delta_gates(a.alpha.row(row), a.beta.row(row), a.a, a.dt, a.value_heads,
                          s.decay + row * a.value_heads, s.beta + row * a.value_heads);
        }
      });

  const int64_t tiles = (dv + kTile - 1) / kTile;
  const int64_t per_seq = a.value_heads * tiles;
  const double ns_per_row = 0.5 * dk * kTile / 8;
  const bool large = int64_t{a.value_heads} * dk * dv * 4 >= kLargeState;
  pool.parallel_for(
      Loop{.n_items = *a.rows.n_seqs * per_seq,
           .ns_per_item = ns_per_row * (1 + static_cast<double>(n_rows) / *a.rows.n_seqs)},
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t seq = i / per_seq, h = i % per_seq / tiles;
          const int v0 = static_cast<int>(i % tiles) * kTile, vn = std::min(kTile, dv - v0);
          const int slot = a.rows.seq_slot[seq], side = a.rows.side[slot];
          const int n = a.rows.seq_rows[seq];
          const int64_t first = a.rows.seq_first[seq], kh = h % a.key_heads;
          const float* q = s.qk + first * qk_width + kh * dk;
          float* log = a.state.logs(n) ? a.state.log_d.row(slot) + h * dv : nullptr;
          fns.delta_rule(a.state.side(slot, side) + h * dk * dv,
                         a.state.side(slot, 1 - side) + h * dk * dv, dk, dv, v0, vn, n, q,
                         q + static_cast<int64_t>(a.key_heads) * dk, qk_width,
                         a.qkv.row(first) + qk_width + h * dv, a.qkv.extent(1),
                         s.decay + first * a.value_heads + h, s.beta + first * a.value_heads + h,
                         a.value_heads, a.o.row(first) + h * dv, log, v_width, large);
        }
      });

  for (int seq = 0; seq < *a.rows.n_seqs; ++seq) {
    const int slot = a.rows.seq_slot[seq], n = a.rows.seq_rows[seq];
    if (!a.state.logs(n)) continue;
    for (int t = 0; t < n; ++t) {
      const int64_t row = a.rows.seq_first[seq] + t;
      std::copy_n(s.decay + row * a.value_heads, a.value_heads,
                  a.state.log_g.row(slot) + static_cast<int64_t>(t) * a.value_heads);
      std::copy_n(s.qk + row * qk_width + qk_width / 2, qk_width / 2,
                  a.state.log_k.row(slot) + t * (qk_width / 2));
    }
  }
}

void gdn_commit(const GdnCommit& a, ThreadPool& pool) {
  pool.parallel_for(Loop{.n_items = static_cast<int64_t>(*a.rows.n_seqs) * a.value_heads},
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        const int64_t seq = i / a.value_heads, h = i % a.value_heads;
                        const int kept = a.kept[seq];
                        if (kept < 0) continue;
                        const int slot = a.rows.seq_slot[seq], side = a.rows.side[slot];
                        const int64_t at = h * a.dk * a.dv;
                        row_fns().delta_replay(a.state.side(slot, side) + at,
                                               a.state.side(slot, 1 - side) + at, a.dk, a.dv, kept,
                                               a.state.log_k.row(slot) + h % a.key_heads * a.dk,
                                               static_cast<int64_t>(a.key_heads) * a.dk,
                                               a.state.log_d.row(slot) + h * a.dv,
                                               static_cast<int64_t>(a.value_heads) * a.dv,
                                               a.state.log_g.row(slot) + h, a.value_heads);
                      }
                    });
}

void gated_norm(const GatedNorm& a, ThreadPool& pool) {
  const int64_t heads = a.o.extent(1) / a.dv;
  pool.parallel_for(Loop{.n_items = *a.n_rows * heads, .ns_per_item = a.dv * 0.15},
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        row_fns().gated_norm(a.o.data() + i * a.dv, a.w, a.z.data() + i * a.dv,
                                             a.dv, a.eps, a.out.data() + i * a.dv);
                      }
                    });
}

}  // namespace strata::kernels::cpu
