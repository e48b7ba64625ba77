#include "strata/quant/tiles.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace strata::quant {
namespace {

std::vector<std::byte> random_bytes(size_t n) {
  std::mt19937 random(7);
  std::vector<std::byte> bytes(n);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

TEST(Tiles, EveryTypeWithHalvesAndWordsHasAForm) {
  for (const TypeTraits& t : all_types()) {
    const bool other = t.type_class != TypeClass::kQuantised || t.type == Type::kIQ1_M ||
                       t.type == Type::kMXFP4 || t.type == Type::kNVFP4;
    EXPECT_EQ(static_cast<bool>(tile_form(t.type)), !other) << t.name;
  }
}

TEST(Tiles, EachRowComesBack) {
  for (const TypeTraits& t : all_types()) {
    if (!tile_form(t.type)) continue;
    for (const int n_blocks : {1, 3, 10}) {
      const int64_t cols = int64_t{n_blocks} * t.block_values;
      const size_t row = row_bytes(t.type, static_cast<uint64_t>(cols));
      const std::vector<std::byte> rows = random_bytes(kTileRows * row);
      std::vector<std::byte> tile(rows.size());
      to_tile(t.type, cols, rows.data(), tile.data());
      for (int r = 0; r < kTileRows; ++r) {
        std::vector<std::byte> back(row);
        row_of_tile(t.type, cols, tile.data(), r, back.data());
        EXPECT_EQ(std::memcmp(back.data(), rows.data() + static_cast<size_t>(r) * row, row), 0)
            << t.name << " row " << r << " of " << n_blocks << " blocks";
      }
    }
  }
}

// The layout is a contract with kernels on every device: two of its places, by hand.
TEST(Tiles, ScalesStandBeforeTheWords) {
  constexpr int kBlocks = 2, kRow = kBlocks * 144;
  const std::vector<std::byte> rows = random_bytes(size_t{kTileRows} * kRow);
  std::vector<std::byte> tile(rows.size());
  to_tile(Type::kQ4_K, int64_t{kBlocks} * 256, rows.data(), tile.data());
  // dmin of block 1 of row 5
  EXPECT_EQ(std::memcmp(&tile[(1 * 2 + 1) * 32 + 5 * 2], &rows[5 * kRow + 144 + 2], 2), 0);
  // word 7 behind the scales of block 1 of row 9
  EXPECT_EQ(std::memcmp(&tile[kBlocks * 64 + (35 + 7) * 64 + 9 * 4],
                        &rows[9 * kRow + 144 + 4 + 7 * 4], 4),
            0);
}

}  // namespace
}  // namespace strata::quant
