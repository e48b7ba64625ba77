#pragma once

#include <cstdint>

#include "strata/base/view.h"
#include "strata/quant/types.h"

namespace strata::kernels {

// The rows of one step. Everything that changes from step to step is data in device memory, never
// a launch argument, so that one captured graph serves any sessions and positions.
//
// A step holds sequences; a sequence is the run of new tokens of one slot. Its rows stand together,
// in token order. A token's index counts from 0 within its session; n_cached is the number of
// committed tokens of the slot, so the first row of a sequence has index n_cached.
struct Rows {
  const int32_t* n_rows = nullptr;     // [1]
  const int32_t* n_seqs = nullptr;     // [1]
  const int32_t* id = nullptr;         // [max_rows] token id
  const int32_t* slot = nullptr;       // [max_rows]
  const int32_t* index = nullptr;      // [max_rows] of the token within its session
  const int32_t* seq_slot = nullptr;   // [max_seqs]
  const int32_t* seq_first = nullptr;  // [max_seqs] first row
  const int32_t* seq_rows = nullptr;   // [max_seqs] number of rows
  const int32_t* side = nullptr;      // [slots] which of the two copies of a recurrent state counts
  const int32_t* pages = nullptr;     // [slots, pages_per_slot] page of the pool, -1 = none
  const float* rope = nullptr;        // [max_rows, 2, pairs] cos then sin at the token's position
  const float* rope_block = nullptr;  // [max_rows, 2, pairs] at the first token of its index block
  int32_t pages_per_slot = 0;
  int32_t max_rows = 0, max_seqs = 0;  // the shape class of a graph
};

enum class Packing : uint8_t {
  kGguf,   // rows of blocks as the file has them; any alignment
  kTiles,  // tiles of 16 rows (quant/tiles.h), 64-byte aligned; rows is a multiple of 16
};

// A matrix [rows, cols], row-major in blocks of its type. Does not own.
struct Weight {
  const std::byte* data = nullptr;
  const float* scale = nullptr;  // one factor on the product (NVFP4 files), or null
  int32_t rows = 0, cols = 0;
  quant::Type type = quant::Type::kF32;
  Packing packing = Packing::kGguf;
  // Whether there is such a matrix; its data may not be placed yet.
  explicit operator bool() const { return rows > 0; }
  // F32, F16 and BF16 weights take f32 activations, the others int8 (docs/numerics.md).
  bool takes_floats() const { return quant::traits(type).type_class == quant::TypeClass::kFloat; }
};

// The last rows that a causal operation remembers of each slot, twice: side `rows.side[slot]` is
// committed, forward writes the other. log holds the inputs of a short window, so that a part of
// it can be committed.
struct Tail {
  View<float> state;  // [slots, 2, depth, width], oldest row first
  View<float> log;    // [slots, window, width]

  constexpr int64_t depth() const { return state.extent(2); }
  constexpr int64_t width() const { return state.extent(3); }
  constexpr float* side(int slot, int which) const {
    return state.data() + (2 * static_cast<int64_t>(slot) + which) * depth() * width();
  }
  constexpr float* logged(int slot, int row) const { return log.row(slot) + row * width(); }
  // A sequence of one row is committed whole or not at all, and a prompt chunk too.
  constexpr bool logs(int n_rows) const { return n_rows > 1 && n_rows <= log.extent(1); }
};

}  // namespace strata::kernels
