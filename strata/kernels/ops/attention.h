#pragma once

#include "strata/kernels/ops/op.h"
#include "strata/kernels/ops/rows.h"

namespace strata::kernels {

// kI8: a cell (the key or value of one token and kv head) is quantised by rule 1 of
// quant/canonical.h as one block. Its codes are the elements; its f32 scale multiplies the score of
// a key, and the weight of a value. Pooled keys are f16 then.
enum class CacheType : uint8_t { kF32, kF16, kI8 };
constexpr int64_t bytes_of(CacheType type) {
  return type == CacheType::kF32 ? 4 : type == CacheType::kF16 ? 2 : 1;
}
constexpr const char* name_of(CacheType type) {
  return type == CacheType::kF32 ? "f32" : type == CacheType::kF16 ? "f16" : "int8";
}

// Keys, values and pooled index keys of one attention layer, in pages of page_tokens tokens.
struct KvPool {
  // [pages] of [kv_heads, page_tokens, dk] elements, and with kI8 behind them the scales
  // [kv_heads, page_tokens]. kv_heads * page_tokens is a multiple of 4, for the scales to lie
  // right.
  std::byte* k = nullptr;
  std::byte* v = nullptr;       // the same, of dv elements
  std::byte* pooled = nullptr;  // [pages, page_tokens / ratio, index_dim]; null: dense layer
  CacheType type = CacheType::kF16;
  int page_tokens = 0, kv_heads = 0, dk = 0, dv = 0, index_dim = 0, ratio = 0;

  constexpr CacheType pooled_type() const {
    return type == CacheType::kI8 ? CacheType::kF16 : type;
  }
  constexpr int blocks_per_page() const { return page_tokens / ratio; }
  // Where in k (dim = dk) or v (dv) a token's cell of one kv head begins, and its scale: in bytes.
  constexpr int64_t cell(const Rows& rows, int slot, int64_t index, int head, int dim) const {
    return cell_of_page(page_of(rows, slot, index), index, head, dim);
  }
  constexpr int64_t cell_of_page(int64_t page, int64_t index, int head, int dim) const {
    return page * page_bytes(dim) + cell_in_page(index, head) * dim * bytes_of(type);
  }
  constexpr int64_t scale(const Rows& rows, int slot, int64_t index, int head, int dim) const {
    return scale_of_page(page_of(rows, slot, index), index, head, dim);
  }
  constexpr int64_t scale_of_page(int64_t page, int64_t index, int head, int dim) const {
    return (page + 1) * page_bytes(dim) - 4 * (cells_per_page() - cell_in_page(index, head));
  }
  // Where in pooled a block's pooled key begins.
  constexpr int64_t pooled_cell(const Rows& rows, int slot, int64_t block) const {
    return pooled_cell_of_page(page_of(rows, slot, block * ratio), block);
  }
  constexpr int64_t pooled_cell_of_page(int64_t page, int64_t block) const {
    return page * pooled_page_bytes() +
           block % blocks_per_page() * index_dim * bytes_of(pooled_type());
  }
  // Bytes of a page: of keys or values, and of pooled keys.
  constexpr int64_t page_bytes(int dim) const {
    return cells_per_page() * (dim * bytes_of(type) + (type == CacheType::kI8 ? 4 : 0));
  }
  constexpr int64_t pooled_page_bytes() const {
    return int64_t{blocks_per_page()} * index_dim * bytes_of(pooled_type());
  }
  constexpr int64_t cells_per_page() const { return int64_t{kv_heads} * page_tokens; }
  constexpr int64_t cell_in_page(int64_t index, int head) const {
    return int64_t{head} * page_tokens + index % page_tokens;
  }
  constexpr int64_t page_of(const Rows& rows, int slot, int64_t index) const {
    return rows.pages[static_cast<int64_t>(slot) * rows.pages_per_slot + index / page_tokens];
  }
};

// x = rope(rms(x; w)) for each head of each row; the first 2 * pairs dims rotate, pair (i, i +
// pairs). Shapes: x [max_rows, row_stride] with head h at h * head_stride; out [max_rows, heads,
// dim].
struct QkNormRope {
  static constexpr const char* kName = "qk_norm_rope";
  Rows rows;
  View<const float> x;
  const float* w = nullptr;
  int heads = 0, dim = 0, head_stride = 0, pairs = 0;
  float eps = 0;
  View<float> out;
};
void check(const QkNormRope& args);

// Writes k and v of the rows behind the committed cells.
// Shapes: k [max_rows, kv_heads, dk]; v [max_rows, kv_heads, dv].
struct KvAppend {
  static constexpr const char* kName = "kv_append";
  Rows rows;
  View<const float> k, v;
  KvPool pool;
};
void check(const KvAppend& args);

// For each row that completes an index block: pooled = rope(rms(mean of the block's raw keys; w)),
// rotated at the position of the block's first token. Raw keys before the sequence come from the
// tail (depth ratio - 1).
// Shapes: raw [max_rows, index_dim].
struct PoolKeys {
  static constexpr const char* kName = "pool_keys";
  Rows rows;
  View<const float> raw;
  const float* w = nullptr;
  int pairs = 0;
  float eps = 0;
  Tail tail;
  KvPool pool;
};
void check(const PoolKeys& args);

// The blocks that each row attends: of its complete blocks the `budget` best by
// score_b = sum_h relu(q_h . pooled_b) / sqrt(index_dim), of equals the lower index first.
// Shapes: q [max_rows, heads, index_dim]; blocks [max_rows, budget] ascending; n_blocks [max_rows].
// A row whose complete blocks all fit gets n_blocks = -1: everything is selected.
struct QsaSelect {
  static constexpr const char* kName = "qsa_select";
  Rows rows;
  View<const float> q;
  int heads = 0, budget = 0;
  int64_t max_context = 0;  // tokens a slot can hold; sizes the scratch
  KvPool pool;
  View<int32_t> blocks, n_blocks;
  View<std::byte> scratch;
};
void check(const QsaSelect& args);

// Softmax attention over the selected tokens, then the output gate:
//   o_h = sum_s softmax_s(q_h . k_s / sqrt(dk)) v_s;  out = o * sigm(gate)
// Where cells have scales, k_s and v_s are codes: the score is (q_h . k_s / sqrt(dk)) * scale of
// the key, and v_s is weighed by the softmax times the scale of the value. Selected: the blocks of
// QsaSelect and the tail of the open block; all tokens where n_blocks is -1 or budget 0. Query head
// h uses kv head h / (heads / kv_heads). Shapes: q [max_rows, heads, dk]; gate [max_rows, heads *
// gate_stride] read at
//         h * gate_stride + gate_offset; out [max_rows, heads * dv].
struct QsaAttend {
  static constexpr const char* kName = "qsa_attend";
  Rows rows;
  View<const float> q, gate;
  int heads = 0, gate_stride = 0, gate_offset = 0;
  int budget = 0;  // blocks that a row attends at most; 0: dense
  int64_t max_context = 0;
  KvPool pool;
  View<const int32_t> blocks, n_blocks;  // of QsaSelect, where budget > 0
  View<float> out;
  View<std::byte> scratch;
};
void check(const QsaAttend& args);

}  // namespace strata::kernels
