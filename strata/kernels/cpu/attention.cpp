#include <algorithm>

#include "strata/kernels/cpu/cpu.h"

namespace strata::kernels::cpu {
namespace {

constexpr int kMaxHeadDim = 512;  // of the row functions' buffers

// scale: of kI8.
void store_row(CacheType type, const float* x, int n, std::byte* to, std::byte* scale) {
  if (type == CacheType::kF32) {
    std::copy_n(x, n, reinterpret_cast<float*>(to));
  } else if (type == CacheType::kF16) {
    row_fns().to_f16(x, n, reinterpret_cast<uint16_t*>(to));
  } else {
    *reinterpret_cast<float*>(scale) = row_fns().to_i8(x, n, reinterpret_cast<int8_t*>(to));
  }
}

// Cells that one row may attend: what the selection can hold, or the whole context.
int64_t max_cells(const QsaAttend& a) {
  if (a.budget == 0) return a.max_context;
  // Also of a row that attends everything: it has at most `budget` complete blocks.
  return std::min<int64_t>(a.max_context, (int64_t{a.budget} + 1) * a.pool.ratio);
}

// Appends the key and value rows of the cells a query attends, in ascending order. cells has the
// room, and none yet.
template <class T>
void collect(const QsaAttend& a, int row, int kv_head, CellRows<T>& cells) {
  const KvPool& pool = a.pool;
  const int slot = a.rows.slot[row];
  const int64_t index = a.rows.index[row];
  const auto add = [&](int64_t first, int64_t end) {
    for (int64_t s = first; s < end; ++s) {
      const auto at = [&](const std::byte* of, int dim) {
        return reinterpret_cast<const T*>(of + pool.cell(a.rows, slot, s, kv_head, dim));
      };
      const auto scale_at = [&](const std::byte* of, int dim) {
        return *reinterpret_cast<const float*>(of + pool.scale(a.rows, slot, s, kv_head, dim));
      };
      if constexpr (sizeof(T) == 1) {
        cells.key_scales[cells.n] = scale_at(pool.k, pool.dk);
        cells.value_scales[cells.n] = scale_at(pool.v, pool.dv);
      }
      cells.keys[cells.n] = at(pool.k, pool.dk);
      cells.values[cells.n++] = at(pool.v, pool.dv);
    }
  };
  if (a.budget > 0 && a.n_blocks[row] >= 0) {
    for (int b = 0; b < a.n_blocks[row]; ++b) {
      const int64_t first = static_cast<int64_t>(a.blocks.row(row)[b]) * pool.ratio;
      add(first, first + pool.ratio);
    }
    add((index + 1) / pool.ratio * pool.ratio, index + 1);
  } else {
    add(0, index + 1);
  }
}

// Of max_cells(a) for each thread; scores for each query head of a kv head.
struct AttendScratch {
  const void **keys, **values;
  float *score, *key_scales, *value_scales;
};

AttendScratch carve(const QsaAttend& a, int64_t n_threads, Carver& carver) {
  const int64_t n = max_cells(a) * n_threads, n_scales = a.pool.type == CacheType::kI8 ? n : 0;
  return {carver.take<const void*>(n), carver.take<const void*>(n),
          carver.take<float>(n * (a.heads / a.pool.kv_heads)), carver.take<float>(n_scales),
          carver.take<float>(n_scales)};
}

// Query heads [first, first + n), which share a kv head.
template <class T>
void attend_some(const QsaAttend& a, int row, int first, int n, const AttendScratch& s,
                 int thread) {
  const int64_t room = max_cells(a), mine = thread * room;
  const int group = a.heads / a.pool.kv_heads, dk = a.pool.dk, dv = a.pool.dv;
  CellRows<T> cells{.keys = reinterpret_cast<const T**>(s.keys) + mine,
                    .values = reinterpret_cast<const T**>(s.values) + mine};
  if constexpr (sizeof(T) == 1) {
    cells.key_scales = s.key_scales + mine, cells.value_scales = s.value_scales + mine;
  }
  collect(a, row, first / group, cells);
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(dk));
  const float* gate = a.gate.row(row) + first * a.gate_stride + a.gate_offset;
  const auto attend = [&] {
    if constexpr (sizeof(T) == 4) {
      return row_fns().attend_f32;
    } else if constexpr (sizeof(T) == 2) {
      return row_fns().attend_f16;
    } else {
      return row_fns().attend_i8;
    }
  }();
  attend(a.q.row(row) + first * dk, n, dk, dv, cells, scale, gate, a.gate_stride,
         s.score + mine * group, a.out.row(row) + first * dv);
}

// Tokens before and with the last row, for estimates; 0 in a step without rows.
int64_t context_of_last(const Rows& rows) {
  return *rows.n_rows > 0 ? int64_t{rows.index[*rows.n_rows - 1]} + 1 : 0;
}

int64_t max_blocks(const QsaSelect& a) { return a.max_context / a.pool.ratio + 1; }
// Scores, for each thread a row.
float* carve(const QsaSelect& a, int64_t n_threads, Carver& carver) {
  return carver.take<float>(max_blocks(a) * n_threads);
}

// Scores of the blocks [begin, end) of a row, page by page; begin is the first of a page.
void score_blocks(const QsaSelect& a, int row, int64_t begin, int64_t end, float* score) {
  const KvPool& pool = a.pool;
  const int dim = pool.index_dim, per_page = pool.blocks_per_page();
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(dim));
  for (int64_t b = begin; b < end; b += per_page) {
    const int here = static_cast<int>(std::min<int64_t>(per_page, end - b));
    const std::byte* keys = pool.pooled + pool.pooled_cell(a.rows, a.rows.slot[row], b);
    if (pool.pooled_type() == CacheType::kF32) {
      row_fns().index_scores_f32(a.q.row(row), reinterpret_cast<const float*>(keys), a.heads, dim,
                                 here, scale, score + b);
    } else {
      row_fns().index_scores_f16(a.q.row(row), reinterpret_cast<const uint16_t*>(keys), a.heads,
                                 dim, here, scale, score + b);
    }
  }
}

}  // namespace

void qk_norm_rope(const QkNormRope& a, ThreadPool& pool) {
  pool.parallel_for(
      Loop{.n_items = static_cast<int64_t>(*a.rows.n_rows) * a.heads, .ns_per_item = a.dim * 0.5},
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t row = i / a.heads, h = i % a.heads;
          row_fns().norm_rope(a.x.row(row) + h * a.head_stride, a.w, a.dim, a.eps,
                              a.rows.rope + row * 2 * a.pairs, a.pairs, a.out.row(row) + h * a.dim);
        }
      });
}

void kv_append(const KvAppend& a, ThreadPool&) {
  const KvPool& pool = a.pool;
  for (int row = 0; row < *a.rows.n_rows; ++row) {
    const int slot = a.rows.slot[row];
    const int64_t index = a.rows.index[row];
    for (int h = 0; h < pool.kv_heads; ++h) {
      store_row(pool.type, a.k.row(row) + h * pool.dk, pool.dk,
                pool.k + pool.cell(a.rows, slot, index, h, pool.dk),
                pool.k + pool.scale(a.rows, slot, index, h, pool.dk));
      store_row(pool.type, a.v.row(row) + h * pool.dv, pool.dv,
                pool.v + pool.cell(a.rows, slot, index, h, pool.dv),
                pool.v + pool.scale(a.rows, slot, index, h, pool.dv));
    }
  }
}

bool pool_keys_takes(const PoolKeys& a) { return a.pool.index_dim <= kMaxHeadDim; }

void pool_keys(const PoolKeys& a, ThreadPool&) {
  const int dim = a.pool.index_dim, ratio = a.pool.ratio, depth = ratio - 1;
  float mean[kMaxHeadDim], key[kMaxHeadDim];
  for (int seq = 0; seq < *a.rows.n_seqs; ++seq) {
    const int slot = a.rows.seq_slot[seq], first = a.rows.seq_first[seq];
    const int n = a.rows.seq_rows[seq], side = a.rows.side[slot];
    const float* old = a.tail.side(slot, side);
    float* next = a.tail.side(slot, 1 - side);
    const auto raw = [&](int t) {
      return t >= 0 ? a.raw.row(first + t) : old + static_cast<int64_t>(depth + t) * dim;
    };
    for (int t = 0; t < n; ++t) {
      const int index = a.rows.index[first + t];
      if ((index + 1) % ratio != 0) continue;
      std::fill_n(mean, dim, 0.0f);
      for (int j = 0; j < ratio; ++j) {
        const float* x = raw(t - ratio + 1 + j);
        for (int i = 0; i < dim; ++i) mean[i] += x[i];
      }
      for (int i = 0; i < dim; ++i) mean[i] = mean[i] / static_cast<float>(ratio);
      row_fns().norm_rope(mean, a.w, dim, a.eps,
                          a.rows.rope_block + static_cast<int64_t>(first + t) * 2 * a.pairs,
                          a.pairs, key);
      store_row(a.pool.pooled_type(), key, dim,
                a.pool.pooled + a.pool.pooled_cell(a.rows, slot, index / ratio), nullptr);
    }
    for (int d = 0; d < depth; ++d) {
      std::copy_n(raw(n - depth + d), dim, next + static_cast<int64_t>(d) * dim);
    }
    for (int t = 0; a.tail.logs(n) && t < n; ++t) {
      std::copy_n(raw(t), dim, a.tail.logged(slot, t));
    }
  }
}

Bytes qsa_select_scratch(const device::Stream& stream, const QsaSelect& a) {
  Carver carver(nullptr);
  carve(a, stream.pool().n_threads(), carver);
  return carver.peak();
}

void qsa_select(const QsaSelect& a, ThreadPool& pool) {
  constexpr double kNsABlock = 12;
  Carver carver(a.scratch.data());
  float* scores = carve(a, pool.n_threads(), carver);
  const int64_t room = max_blocks(a), n_rows = *a.rows.n_rows, budget = a.budget;
  const auto complete = [&](int64_t row) { return (a.rows.index[row] + 1) / a.pool.ratio; };
  const auto choose = [&](int64_t row, const float* score) {
    row_fns().best_blocks(score, static_cast<int>(complete(row)), a.budget, a.blocks.row(row));
    a.n_blocks[row] = a.budget;
  };
  for (int64_t row = 0; row < n_rows; ++row) a.n_blocks[row] = -1;
  const int64_t most = context_of_last(a.rows) / a.pool.ratio;

  if (n_rows < pool.n_threads()) {
    // Fewer rows than threads: these share the blocks of each row.
    const int64_t piece = int64_t{a.pool.blocks_per_page()} * 8;
    for (int64_t row = 0; row < n_rows; ++row) {
      const int64_t n = complete(row);
      if (n <= budget) continue;
      pool.parallel_for(Loop{.n_items = (n + piece - 1) / piece,
                             .ns_per_item = static_cast<double>(piece) * kNsABlock},
                        [&](int64_t begin, int64_t end) {
                          score_blocks(a, static_cast<int>(row), begin * piece,
                                       std::min(end * piece, n), scores);
                        });
      choose(row, scores);
    }
    return;
  }
  pool.parallel_for(Loop{.n_items = n_rows,
                         .ns_per_item = most > budget ? static_cast<double>(most) * kNsABlock : 1},
                    [&](int64_t begin, int64_t end, int thread) {
                      float* score = scores + thread * room;
                      for (int64_t row = begin; row < end; ++row) {
                        const int64_t n = complete(row);
                        if (n <= budget) continue;
                        score_blocks(a, static_cast<int>(row), 0, n, score);
                        choose(row, score);
                      }
                    });
}

Bytes qsa_attend_scratch(const device::Stream& stream, const QsaAttend& a) {
  Carver carver(nullptr);
  carve(a, stream.pool().n_threads(), carver);
  return carver.peak();
}

bool qsa_attend_takes(const QsaAttend& a) {
  return a.pool.dk <= kMaxHeadDim && a.pool.dv <= kMaxHeadDim &&
         a.heads / a.pool.kv_heads <= kMaxAttendHeads;
}

void qsa_attend(const QsaAttend& a, ThreadPool& pool) {
  Carver carver(a.scratch.data());
  const AttendScratch s = carve(a, pool.n_threads(), carver);
  const int kv_heads = a.pool.kv_heads, group = a.heads / kv_heads;
  // A group of heads reads its cells once; where that is fewer items than threads, in parts.
  constexpr int kPart = 4;
  const int64_t groups = int64_t{*a.rows.n_rows} * kv_heads;
  const int part = groups >= pool.n_threads() ? group : std::min(group, kPart);
  const int parts = (group + part - 1) / part;
  const double cells = static_cast<double>(std::min(max_cells(a), context_of_last(a.rows)));
  pool.parallel_for(Loop{.n_items = groups * parts, .ns_per_item = cells * part * a.pool.dk * 0.05},
                    [&](int64_t begin, int64_t end, int thread) {
                      for (int64_t i = begin; i < end; ++i) {
                        const int row = static_cast<int>(i / parts / kv_heads);
                        const int head = static_cast<int>(i / parts % kv_heads);
                        const int at = static_cast<int>(i % parts) * part;
                        const int first = head * group + at, n = std::min(part, group - at);
                        if (a.pool.type == CacheType::kF32) {
                          attend_some<float>(a, row, first, n, s, thread);
                        } else if (a.pool.type == CacheType::kF16) {
                          attend_some<uint16_t>(a, row, first, n, s, thread);
                        } else {
                          attend_some<int8_t>(a, row, first, n, s, thread);
                        }
                      }
                    });
}

}  // namespace strata::kernels::cpu
