#pragma once

#include "strata/kernels/gpu/lanes.cuh"
#include "strata/kernels/gpu/launch.h"
#include "strata/kernels/ops/attention.h"

// What the kernels of attention share: the tokens of a row, and values of the cache.
namespace strata::kernels::gpu {

constexpr float kMinusInfinity = -__builtin_huge_valf();

// Element i of the cell, or pooled key, that begins at `at`.
STRATA_FN float load(CacheType type, const std::byte* at, int64_t i) {
  if (type == CacheType::kF32) return reinterpret_cast<const float*>(at)[i];
  if (type == CacheType::kF16) return load_half(reinterpret_cast<const uint16_t*>(at)[i]);
  return static_cast<float>(reinterpret_cast<const int8_t*>(at)[i]);
}
STRATA_FN float scale_of(const KvPool& p, const std::byte* cells, const Rows& rows, int slot,
                         int64_t index, int head, int dim) {
  return *reinterpret_cast<const float*>(cells + p.scale(rows, slot, index, head, dim));
}

STRATA_FN float as_float(float v) { return v; }
STRATA_FN float as_float(uint16_t bits) { return load_half(bits); }
STRATA_FN float as_float(int8_t code) { return static_cast<float>(code); }

// The tokens that a row attends, in order.
struct Selected {
  const int32_t* blocks;
  int64_t n_from_blocks, open, n;
  int ratio;
};
STRATA_FN int64_t token_of(const Selected& s, int64_t i) {
  return i < s.n_from_blocks ? int64_t{s.blocks[i / s.ratio]} * s.ratio + i % s.ratio
                             : s.open + i - s.n_from_blocks;
}
STRATA_FN Selected selected_by(const QsaAttend& a, int row) {
  const int64_t index = a.rows.index[row];
  if (a.budget == 0 || a.n_blocks[row] < 0) return {nullptr, 0, 0, index + 1, 1};
  const int ratio = a.pool.ratio;
  const int64_t from_blocks = int64_t{a.n_blocks[row]} * ratio, open = (index + 1) / ratio * ratio;
  return {a.blocks.row(row), from_blocks, open, from_blocks + index + 1 - open, ratio};
}

inline int64_t most_selected(const QsaAttend& a) {
  if (a.budget == 0) return a.max_context;
  const int64_t most = (int64_t{a.budget} + 1) * a.pool.ratio;
  return most < a.max_context ? most : a.max_context;
}
// Few rows: attend_few.cu. Whether it takes so many, its scratch for as many as it takes, and it.
bool attend_few_takes(const QsaAttend& a, int64_t rows);
Bytes attend_few_scratch(const QsaAttend& a);
void attend_few(const QsaAttend& a, NativeStream s);

}  // namespace strata::kernels::gpu
