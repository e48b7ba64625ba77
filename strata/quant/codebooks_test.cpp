#include "strata/quant/codebooks.h"

#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <iterator>
#include <string>

namespace strata::quant {
namespace {

template <class Grid>
void expect_equal_to_file(const Grid& grid, const std::string& name) {
  std::ifstream file(STRATA_SOURCE_DIR "/tests/golden/quant/" + name, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  ASSERT_EQ(bytes.size(), grid.size() * grid[0].size()) << name;
  size_t at = 0;
  for (const auto& entry : grid) {
    for (int8_t value : entry) {
      ASSERT_EQ(value, static_cast<int8_t>(bytes[at])) << name << " at " << at;
      ++at;
    }
  }
  EXPECT_EQ(std::bit_cast<uintptr_t>(&grid) % 64, 0U) << name;
}

TEST(Codebooks, EqualTheirFiles) {
  expect_equal_to_file(kIq2xxsGrid, "iq2xxs.i8");
  expect_equal_to_file(kIq2xsGrid, "iq2xs.i8");
  expect_equal_to_file(kIq2sGrid, "iq2s.i8");
  expect_equal_to_file(kIq3xxsGrid, "iq3xxs.i8");
  expect_equal_to_file(kIq3sGrid, "iq3s.i8");
  expect_equal_to_file(kIq1sGrid, "iq1s.i8");
}

TEST(Codebooks, SignBytesHaveAnEvenNumberOfOnes) {
  for (uint32_t x = 0; x < 128; ++x) {
    EXPECT_EQ(sign_byte(x) & 127U, x);
    EXPECT_EQ(std::popcount(sign_byte(x)) % 2, 0);
    EXPECT_EQ(sign_byte(x | 0xFFFFFF80U), sign_byte(x)) << "only seven bits count";
  }
}

}  // namespace
}  // namespace strata::quant
