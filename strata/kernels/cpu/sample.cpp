#include <algorithm>

#include "strata/kernels/cpu/cpu.h"
#include "strata/kernels/ref/sample_row.h"

namespace strata::kernels::cpu {
namespace {

// Rows are dealt out to lanes, each with room for one row.
int64_t n_lanes(int n_threads, int64_t n_rows) { return std::min<int64_t>(n_threads, n_rows); }

}  // namespace

Bytes sample_rows_scratch(const device::Stream& stream, const SampleRows& a) {
  const int64_t lanes = n_lanes(stream.pool().n_threads(), a.logits.extent(0));
  return static_cast<Bytes>(lanes) * ref::sample_row_scratch(a);
}

void sample_rows(const SampleRows& a, ThreadPool& pool) {
  const int64_t n_rows = *a.n_rows, lanes = n_lanes(pool.n_threads(), n_rows);
  const auto lane_bytes = static_cast<int64_t>(ref::sample_row_scratch(a));
  pool.parallel_for(lanes, 1, [&](int64_t begin, int64_t end) {
    for (int64_t lane = begin; lane < end; ++lane) {
      std::byte* const scratch = a.scratch.data() + lane * lane_bytes;
      for (int64_t row = lane; row < n_rows; row += lanes) {
        a.chosen[row] = ref::sample_row(a, static_cast<int>(row), scratch);
      }
    }
  });
}

}  // namespace strata::kernels::cpu
