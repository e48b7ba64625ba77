#pragma once

#include <cstdint>

#include "strata/kernels/gpu/lanes.cuh"

// How a kernel sees one block of a weight row: its f16 scales and the rest as 32-bit words, in the
// order of the block (quant/tiles.h), whether the row lies in a tile or as a file has it.
namespace strata::kernels::gpu {

constexpr int kTileRows = 16;

// One row of a tile: the words of 16 rows stand side by side.
struct InTile {
  const uint32_t* words;
  const uint16_t* halves;
  STRATA_MEMBER uint32_t word(int i) const { return __ldg(words + i * kTileRows); }
  STRATA_MEMBER uint16_t half(int i) const { return __ldg(halves + i * kTileRows); }
};

// Bytes of a file at any address. The aligned words around them are read; these lie in the same
// allocation, which begins and ends at a multiple of 4.
STRATA_FN uint32_t load_word(const uint8_t* at) {
  const auto address = reinterpret_cast<uintptr_t>(at);
  const auto* aligned = reinterpret_cast<const uint32_t*>(address & ~uintptr_t{3});
  const unsigned shift = static_cast<unsigned>(address & 3U) * 8U;
  const uint32_t low = __ldg(aligned);
  return shift == 0 ? low : __funnelshift_r(low, __ldg(aligned + 1), shift);
}
struct InRow {
  const uint8_t* words;
  const uint8_t* halves;
  STRATA_MEMBER uint32_t word(int i) const { return load_word(words + 4 * i); }
  STRATA_MEMBER uint16_t half(int i) const {
    return static_cast<uint16_t>(halves[2 * i] | halves[2 * i + 1] << 8);
  }
};

// Block b of row r of a matrix of type T with `cols` columns.
template <class T>
STRATA_FN InTile block_in_tile(const uint8_t* tile, int n_blocks, int b, int r) {
  const auto* halves = reinterpret_cast<const uint16_t*>(tile);
  const auto* words =
      reinterpret_cast<const uint32_t*>(tile + 2 * kTileRows * T::kHalves * n_blocks);
  return {words + b * T::kWords * kTileRows + r, halves + b * T::kHalves * kTileRows + r};
}
template <class T>
STRATA_FN InRow block_in_row(const uint8_t* row, int b) {
  const uint8_t* const block = row + int64_t{b} * T::kBytes;
  return {block + T::kWordsAt, block + T::kHalvesAt};
}

STRATA_FN uint32_t byte_of(uint32_t word, int i) { return (word >> (8 * i)) & 255U; }
// Bit i of four to the lowest bit of byte i.
STRATA_FN uint32_t spread_bits(uint32_t four) { return ((four & 15U) * 0x00204081U) & 0x01010101U; }
// Four pairs of bits to four bytes.
STRATA_FN uint32_t spread_pairs(uint32_t byte) {
  const uint32_t two = (byte | byte << 12) & 0x000f000fU;
  return (two | two << 6) & 0x03030303U;
}
// Negates byte i where bit i is one. The bytes are 1 to 127, so that nothing is carried over.
STRATA_FN uint32_t negate_where(uint32_t bytes, uint32_t bits) {
  const uint32_t ones = spread_bits(bits);
  return (bytes ^ ones * 255U) + ones;
}
// The sign byte that seven bits stand for: the eighth makes the number of ones even.
STRATA_FN uint32_t sign_byte(uint32_t word) {
  const uint32_t seven = word & 127U;
  return seven | (static_cast<uint32_t>(__popc(seven)) & 1U) << 7;
}

// Entries of a table of 16 bytes by the eight nibbles of a word: those of the low nibbles, in
// order of the bytes, and those of the high ones.
struct Looked {
  uint32_t low, high;
};
struct Table16 {
  uint32_t at[4];
};
template <Table16 kTable>
STRATA_FN Looked look_up(uint32_t nibbles) {
  uint32_t four[2];
  for (int i = 0; i < 2; ++i) {
    const uint32_t at = (nibbles >> (16 * i)) & 0xffffU, eight = at & 0x7777U;
    const uint32_t first = __byte_perm(kTable.at[0], kTable.at[1], eight);
    const uint32_t second = __byte_perm(kTable.at[2], kTable.at[3], eight);
    four[i] = __byte_perm(first, second, 0x3210U | (at & 0x8888U) >> 1);
  }
  return {__byte_perm(four[0], four[1], 0x6420U), __byte_perm(four[0], four[1], 0x7531U)};
}

}  // namespace strata::kernels::gpu
