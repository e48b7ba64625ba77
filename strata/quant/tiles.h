#pragma once

#include <cstddef>
#include <cstdint>

#include "strata/quant/types.h"

// Weight matrices re-laid in tiles of 16 rows, so that one load of 16 lanes has the same 32-bit
// word of 16 rows and a card's warp reads whole lines. The rule is the same for every type and
// changes no size, so the place of a tile of rows is where these rows were, and a move is a copy.
//
// A tile of 16 rows of n blocks, in as many bytes as the rows have in a file:
//   halves  [n][h][16]  the h f16 scales of a block (d; d and dmin or m), h is 1 or 2
//   words   [n][w][16]  what else the block has, as w little-endian words of 4 bytes, in its order
namespace strata::quant {

constexpr int kTileRows = 16;

// Where a block keeps its f16 scales and how many words the rest is.
struct TileForm {
  int n_halves = 0;         // 0: the type is not re-laid
  int half_offset[2] = {};  // bytes from the start of the block, ascending
  int n_words = 0;

  explicit operator bool() const { return n_halves > 0; }
};

// Every quantised type with f16 scales and whole words beside them: all but IQ1_M, MXFP4 and NVFP4.
TileForm tile_form(Type type);

// rows: 16 rows of cols values as a file has them, one after the other. Does not allocate.
// tile: 16 * row_bytes(type, cols). The two do not overlap. The type must have a form.
void to_tile(Type type, int64_t cols, const std::byte* rows, std::byte* tile);

// Block b of row r of a tile of n_blocks a row, as the file had it: block_bytes.
void block_of_tile(const TileForm& form, int n_blocks, const std::byte* tile, int b, int r,
                   std::byte* block);

// Row r of a tile as the file had it: row_bytes(type, cols).
void row_of_tile(Type type, int64_t cols, const std::byte* tile, int r, std::byte* row);

}  // namespace strata::quant
