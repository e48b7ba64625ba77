#include <algorithm>

#include "strata/kernels/cpu/cpu.h"

namespace strata::kernels::cpu {
namespace {

constexpr int kPiece = 1024;  // channels given out together
constexpr int kMaxTaps = 8;

// The inputs of one sequence: rows of x from 0 on, the tail's rows before.
struct History {
  const float* x;
  const float* old;
  int64_t width;
  int64_t depth;
  const float* at(int64_t t) const { return t >= 0 ? x + t * width : old + (depth + t) * width; }
};

}  // namespace

void ple_mix(const PleMix& a, ThreadPool& pool) {
  const int64_t streams = a.residual.extent(1);
  const int width = static_cast<int>(a.residual.extent(2));
  pool.parallel_for(Loop{.n_items = *a.n_rows * streams, .ns_per_item = width * 0.8},
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        const int64_t row = i / streams, at = i % streams * width;
                        row_fns().ple_mix(a.key.row(row) + at, a.value.row(row),
                                          a.residual.row(row) + at, a.norm_key + at,
                                          a.norm_query + at, a.norm_conv + at, width, a.eps,
                                          a.z.row(row) + at, a.normed.row(row) + at);
                      }
                    });
}

bool conv_takes(const Conv& a) { return a.taps <= kMaxTaps; }

void conv(const Conv& a, ThreadPool& pool) {
  const int channels = static_cast<int>(a.x.extent(1));
  const int64_t pieces = (channels + kPiece - 1) / kPiece;
  for (int seq = 0; seq < *a.rows.n_seqs; ++seq) {
    const int slot = a.rows.seq_slot[seq], first = a.rows.seq_first[seq];
    const int n = a.rows.seq_rows[seq], side = a.rows.side[slot];
    const History history{a.x.row(first), a.tail.side(slot, side), channels, a.tail.depth()};
    float* next = a.tail.side(slot, 1 - side);
    const bool logs = a.tail.logs(n);
    // Piece by piece, so that a thread writes the tail of the channels it has just read.
    pool.parallel_for(
        Loop{.n_items = pieces, .ns_per_item = n * kPiece * 0.5}, [&](int64_t begin, int64_t end) {
          const int c0 = static_cast<int>(begin) * kPiece;
          const int c1 = std::min(static_cast<int>(end) * kPiece, channels);
          for (int t = 0; t < n; ++t) {
            const float* in[kMaxTaps];
            for (int k = 0; k < a.taps; ++k) {
              in[k] = history.at(t - static_cast<int64_t>(a.dilation) * (a.taps - 1 - k));
            }
            row_fns().conv(in, a.w, a.taps, c0, c1, a.z ? a.z.row(first + t) : nullptr,
                           a.out.row(first + t));
          }
          for (int64_t d = 0; d < history.depth; ++d) {
            std::copy(history.at(n - history.depth + d) + c0,
                      history.at(n - history.depth + d) + c1, next + d * channels + c0);
          }
          for (int t = 0; logs && t < n; ++t) {
            std::copy(history.at(t) + c0, history.at(t) + c1, a.tail.logged(slot, t) + c0);
          }
        });
  }
}

void tail_commit(const TailCommit& a, ThreadPool&) {
  const int64_t depth = a.tail.depth(), width = a.tail.width();
  for (int seq = 0; seq < *a.rows.n_seqs; ++seq) {
    const int kept = a.kept[seq];
    if (kept < 0) continue;
    const int slot = a.rows.seq_slot[seq], side = a.rows.side[slot];
    const History history{a.tail.logged(slot, 0), a.tail.side(slot, side), width, depth};
    for (int64_t d = 0; d < depth; ++d) {
      std::copy_n(history.at(kept - depth + d), width, a.tail.side(slot, 1 - side) + d * width);
    }
  }
}

}  // namespace strata::kernels::cpu
