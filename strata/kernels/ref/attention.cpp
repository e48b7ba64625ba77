#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "strata/kernels/ref/ref.h"
#include "strata/quant/half.h"

namespace strata::kernels::ref {
namespace {
#include "strata/kernels/canonical_math.inl"

// Rule 1 of quant/canonical.h for one cell.
float quantize_cell(const float* x, int n, int8_t* q) {
  uint32_t most = 0;
  for (int i = 0; i < n; ++i) most = std::max(most, magnitude_bits_c(x[i]));
  for (int i = 0; i < n; ++i) q[i] = code_c(x[i], code_factor_c(most));
  return code_scale_c(most);
}

// One cell, or a pooled key.
void store(CacheType type, const float* x, int n, std::byte* cell) {
  for (int i = 0; i < n; ++i) {
    if (type == CacheType::kF32) {
      std::memcpy(cell + 4 * i, x + i, 4);
    } else {
      const uint16_t half = quant::f32_to_f16(x[i]);
      std::memcpy(cell + 2 * i, &half, 2);
    }
  }
}
void store(const KvPool& pool, std::byte* cells, int64_t cell, int64_t scale, const float* x,
           int n) {
  if (pool.type != CacheType::kI8) return store(pool.type, x, n, cells + cell);
  const float s = quantize_cell(x, n, reinterpret_cast<int8_t*>(cells + cell));
  std::memcpy(cells + scale, &s, 4);
}

void load(CacheType type, const std::byte* cell, int n, float* out) {
  for (int i = 0; i < n; ++i) {
    if (type == CacheType::kF32) {
      std::memcpy(out + i, cell + 4 * i, 4);
    } else if (type == CacheType::kF16) {
      uint16_t half;
      std::memcpy(&half, cell + 2 * i, 2);
      out[i] = quant::f16_to_f32(half);
    } else {
      out[i] = static_cast<float>(static_cast<int8_t>(cell[i]));
    }
  }
}
float scale_at(const std::byte* at) {
  float scale;
  std::memcpy(&scale, at, 4);
  return scale;
}

void norm_rope(const float* x, const float* w, int dim, float eps, const float* rope, int pairs,
               float* out) {
  const float r = inverse_rms_c(x, dim, eps);
  for (int i = 0; i < dim; ++i) out[i] = x[i] * r * w[i];
  for (int i = 0; i < pairs; ++i) {
    const float c = rope[i], s = rope[pairs + i], a = out[i], b = out[i + pairs];
    out[i] = __builtin_fmaf(a, c, -(b * s));
    out[i + pairs] = __builtin_fmaf(b, c, a * s);
  }
}

}  // namespace

void qk_norm_rope(const QkNormRope& a) {
  for (int row = 0; row < *a.rows.n_rows; ++row) {
    for (int h = 0; h < a.heads; ++h) {
      norm_rope(a.x.row(row) + h * a.head_stride, a.w, a.dim, a.eps,
                a.rows.rope + static_cast<int64_t>(row) * 2 * a.pairs, a.pairs,
                a.out.row(row) + h * a.dim);
    }
  }
}

void kv_append(const KvAppend& a) {
  for (int row = 0; row < *a.rows.n_rows; ++row) {
    const int slot = a.rows.slot[row];
    const int index = a.rows.index[row];
    const auto store_head = [&](const View<const float>& from, std::byte* cells, int h, int dim) {
      store(a.pool, cells, a.pool.cell(a.rows, slot, index, h, dim),
            a.pool.scale(a.rows, slot, index, h, dim), from.row(row) + h * dim, dim);
    };
    for (int h = 0; h < a.pool.kv_heads; ++h) {
      store_head(a.k, a.pool.k, h, a.pool.dk);
      store_head(a.v, a.pool.v, h, a.pool.dv);
    }
  }
}

void pool_keys(const PoolKeys& a) {
  const int dim = a.pool.index_dim, ratio = a.pool.ratio, depth = ratio - 1;
  std::vector<float> mean(static_cast<size_t>(dim)), key(mean.size());
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
      for (int i = 0; i < dim; ++i) {
        float sum = 0;
        for (int j = 0; j < ratio; ++j) sum += raw(t - ratio + 1 + j)[i];
        mean[i] = sum / static_cast<float>(ratio);
      }
      norm_rope(mean.data(), a.w, dim, a.eps,
                a.rows.rope_block + static_cast<int64_t>(first + t) * 2 * a.pairs, a.pairs,
                key.data());
      store(a.pool.pooled_type(), key.data(), dim,
            a.pool.pooled + a.pool.pooled_cell(a.rows, slot, index / ratio));
    }
    for (int d = 0; d < depth; ++d) {
      std::copy_n(raw(n - depth + d), dim, next + static_cast<int64_t>(d) * dim);
    }
    for (int t = 0; t < n && a.tail.logs(n); ++t) std::copy_n(raw(t), dim, a.tail.logged(slot, t));
  }
}

void qsa_select(const QsaSelect& a) {
  const int dim = a.pool.index_dim;
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(dim));
  std::vector<float> key(static_cast<size_t>(dim)), score;
  std::vector<int32_t> order;
  for (int row = 0; row < *a.rows.n_rows; ++row) {
    const int n = (a.rows.index[row] + 1) / a.pool.ratio;
    a.n_blocks[row] = -1;
    if (n <= a.budget) continue;
    score.resize(static_cast<size_t>(n));
    for (int b = 0; b < n; ++b) {
      load(a.pool.pooled_type(), a.pool.pooled + a.pool.pooled_cell(a.rows, a.rows.slot[row], b),
           dim, key.data());
      float sum = 0;
      for (int h = 0; h < a.heads; ++h) {
        const float dot = dot_c(a.q.row(row) + h * dim, key.data(), dim);
        sum = sum + (dot < 0 ? 0.0f : dot);  // a NaN stays one
      }
      score[b] = sum * scale;
      // A comparison needs an order: a broken score loses.
      if (score[b] != score[b]) score[b] = -std::numeric_limits<float>::infinity();
    }
    order.resize(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int x, int y) { return score[x] > score[y]; });
    std::sort(order.begin(), order.begin() + a.budget);
    std::copy_n(order.begin(), a.budget, a.blocks.row(row));
    a.n_blocks[row] = a.budget;
  }
}

void qsa_attend(const QsaAttend& a) {
  const KvPool& pool = a.pool;
  const int dk = pool.dk, dv = pool.dv, group = a.heads / pool.kv_heads;
  const bool scaled = pool.type == CacheType::kI8;
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(dk));
  std::vector<int64_t> selected;
  std::vector<float> score, key(static_cast<size_t>(dk)), value(static_cast<size_t>(dv));
  for (int row = 0; row < *a.rows.n_rows; ++row) {
    const int64_t index = a.rows.index[row];
    const int slot = a.rows.slot[row];
    selected.clear();
    if (a.budget > 0 && a.n_blocks[row] >= 0) {
      for (int b = 0; b < a.n_blocks[row]; ++b) {
        for (int j = 0; j < a.pool.ratio; ++j) {
          selected.push_back(static_cast<int64_t>(a.blocks.row(row)[b]) * pool.ratio + j);
        }
      }
      for (int64_t s = (index + 1) / a.pool.ratio * a.pool.ratio; s <= index; ++s) {
        selected.push_back(s);
      }
    } else {
      for (int64_t s = 0; s <= index; ++s) selected.push_back(s);
    }
    score.resize(selected.size());
    for (int h = 0; h < a.heads; ++h) {
      float best = -std::numeric_limits<float>::infinity();
      for (size_t s = 0; s < selected.size(); ++s) {
        const int kv = h / group;
        load(pool.type, pool.k + pool.cell(a.rows, slot, selected[s], kv, dk), dk, key.data());
        score[s] = dot_c(a.q.row(row) + h * dk, key.data(), dk) * scale;
        if (scaled) {
          score[s] = score[s] * scale_at(pool.k + pool.scale(a.rows, slot, selected[s], kv, dk));
        }
        best = score[s] > best ? score[s] : best;
      }
      for (float& s : score) s = exp_c(s - best);
      const float inverse = 1.0f / sum_c(score.data(), static_cast<int64_t>(score.size()));
      float* out = a.out.row(row) + h * dv;
      std::fill_n(out, dv, 0.0f);
      for (size_t s = 0; s < selected.size(); ++s) {
        const int kv = h / group;
        load(pool.type, pool.v + pool.cell(a.rows, slot, selected[s], kv, dv), dv, value.data());
        float weight = score[s];
        if (scaled) {
          weight = weight * scale_at(pool.v + pool.scale(a.rows, slot, selected[s], kv, dv));
        }
        for (int i = 0; i < dv; ++i) out[i] = __builtin_fmaf(weight, value[i], out[i]);
      }
      const float* gate = a.gate.row(row) + h * a.gate_stride + a.gate_offset;
      for (int i = 0; i < dv; ++i) out[i] = out[i] * inverse * sigmoid_c(gate[i]);
    }
  }
}

}  // namespace strata::kernels::ref
