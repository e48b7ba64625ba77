#pragma once

#include "strata/kernels/gpu/lanes.cuh"
#include "strata/kernels/ops/rows.h"

namespace strata::kernels::gpu {

// Where a row stands: token t of the n that a sequence brings, whose first row is `first`.
struct Place {
  int slot, first, t, n;
};
STRATA_FN Place place_of(const Rows& rows, int row) {
  int seq = 0;
  while (row >= rows.seq_first[seq] + rows.seq_rows[seq]) ++seq;
  return {rows.seq_slot[seq], rows.seq_first[seq], row - rows.seq_first[seq], rows.seq_rows[seq]};
}

// Row d of the tail after this step, of one column: from the new rows, or moved up.
STRATA_FN void keep_in_tail(const Rows& rows, const View<const float>& x, const Tail& tail, int seq,
                            int d, int depth, int64_t c) {
  const int slot = rows.seq_slot[seq], side = rows.side[slot], n = rows.seq_rows[seq];
  const int64_t width = tail.width();
  const int t = n - depth + d;
  const float* from = t >= 0 ? x.row(rows.seq_first[seq] + t)
                             : tail.side(slot, side) + static_cast<int64_t>(depth + t) * width;
  tail.side(slot, 1 - side)[int64_t{d} * width + c] = from[c];
}

}  // namespace strata::kernels::gpu
