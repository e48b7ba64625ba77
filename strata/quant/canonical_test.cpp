#include "strata/quant/canonical.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <string>

#include "strata/quant/bits.h"
#include "strata/quant/decode.h"
#include "tests/support/quant_vectors.h"

namespace strata::quant {
namespace {

uint32_t bits(float f) { return std::bit_cast<uint32_t>(f); }

// The formula of tests/golden/quant/make_canonical.py; every step is exact.
std::vector<float> golden_activation(int n, int r) {
  std::vector<float> x(n);
  for (int j = 0; j < n; ++j) {
    const uint32_t k = static_cast<uint32_t>(j) * 2654435761U + static_cast<uint32_t>(r) * 40503U;
    const float unit = static_cast<float>(static_cast<int>(k >> 16) - 32768) / 32768.0F;
    const bool zero = r == 2 && ((j >= 32 && j < 64) || (j >= 256 && j < 512));
    x[j] = zero ? 0.0F : std::ldexp(unit, (j / 32 + r) % 7 - 3);
  }
  return x;
}

TEST(Canonical, EqualsTheIndependentRationalArithmetic) {
  const testing::QuantVectors golden;
  std::ifstream file(STRATA_SOURCE_DIR "/tests/golden/quant/canonical.txt");
  std::string type_name;
  int n = 0;
  int r = 0;
  uint32_t expected = 0;
  int n_lines = 0;
  while (file >> type_name >> std::dec >> n >> r >> std::hex >> expected) {
    SCOPED_TRACE(type_name + " " + std::to_string(n) + " row " + std::to_string(r));
    ++n_lines;
    const std::vector<float> x = golden_activation(n, r);
    float result = 0;
    if (type_name == "F32") {
      result = dot_float(golden.values("Q4_K").data(), x.data(), n);
    } else {
      const Type type = find_type(type_name)->type;
      const auto blocks = golden.blocks(type_name);
      result =
          dot_canonical(type, blocks.data(), n, quantize_row(x.data(), n, activation_block(type)));
    }
    EXPECT_EQ(bits(result), expected) << result << " not " << std::bit_cast<float>(expected);
  }
  EXPECT_GT(n_lines, 300);
}

// Bytes of any kind under scales of a usual size.
std::vector<std::byte> random_row(const TypeTraits& t, int n, std::mt19937& random) {
  std::vector<std::byte> row(row_bytes(t.type, n));
  for (std::byte& b : row) b = static_cast<std::byte>(random());
  const auto put_scale = [&](std::byte* p) {
    const float d = 0.01F + 0.0001F * static_cast<float>(random() % 100);
    store_f16(p, random() % 2 == 0 ? d : -d);
  };
  for (size_t at = 0; at < row.size(); at += static_cast<size_t>(t.block_bytes)) {
    std::byte* block = row.data() + at;
    switch (t.type) {
      case Type::kMXFP4:
        store_u8(block, 118 + random() % 8);
        break;
      case Type::kNVFP4:
        break;            // every byte is a usable scale
      case Type::kIQ1_M:  // d's nibbles lie above the group scales: 0x2?00
        for (int i = 0; i < 4; ++i) {
          std::byte* field = block + 48 + 2 * i;
          store_u16(field, (load_u16(field) & 0xFFFU) | (i == 3 ? 0x2000U : 0U));
        }
        break;
      case Type::kQ2_K:
        put_scale(block + 80), put_scale(block + 82);
        break;
      case Type::kQ3_K:
        put_scale(block + 108);
        break;
      case Type::kQ6_K:
        put_scale(block + 208);
        break;
      default:
        put_scale(block);
        if (t.has_min) put_scale(block + 2);
    }
  }
  return row;
}

// Numbers of activation blocks: one, fewer than the segments, not a multiple of them, many.
constexpr int kBlockCounts[] = {1, 2, 3, 5, 7, 8, 9, 10, 13, 20};

TEST(Canonical, LiesWithinTheRoundingOfActivationsFromTheExactProduct) {
  for (const TypeTraits& t : all_types()) {
    if (t.type_class != TypeClass::kQuantised) continue;
    SCOPED_TRACE(t.name);
    for (int count : kBlockCounts) {
      const int n = count * std::max(t.block_values, t.activation_block);
      const auto seed = static_cast<uint32_t>(count);
      std::mt19937 random(seed);
      std::normal_distribution<float> normal;
      const std::vector<std::byte> row = random_row(t, n, random);
      std::vector<float> w(n);
      decode(t.type, row.data(), w);
      std::vector<float> x(n);
      for (float& v : x) v = normal(random);
      const QuantRow q = quantize_row(x.data(), n, t.activation_block);

      double from_x = 0;     // exact activations
      double from_q = 0;     // quantised ones
      double rounding = 0;   // half a step of each activation
      double magnitude = 0;  // of what is added, cancelling or not
      for (int j = 0; j < n; ++j) {
        const double dx = q.scale[j / q.block];
        from_x += double{w[j]} * x[j];
        from_q += w[j] * dx * q.q[j];
        rounding += std::abs(w[j]) * dx * 0.5;
        magnitude += std::abs(w[j]) * dx * 127;
      }
      const double epsilon = 0x1p-23 * (2 * count + 16);
      const double result = dot_canonical(t.type, row.data(), n, q);
      EXPECT_NEAR(result, from_q, epsilon * magnitude) << "seed " << seed;
      EXPECT_NEAR(result, from_x, 1.001 * rounding + epsilon * magnitude) << "seed " << seed;
      EXPECT_GT(rounding, 0);
    }
  }
}

TEST(Canonical, QuantizeRoundsHalfToEven) {
  std::vector<float> x(32, 0.0F);
  x[0] = 127;
  x[1] = 0.5F;
  x[2] = 1.5F;
  x[3] = -2.5F;
  x[4] = 126.5F;
  x[5] = -127;
  x[6] = 3.51F;
  const QuantRow row = quantize_row(x.data(), 32, 32);
  EXPECT_EQ(row.block, 32);
  EXPECT_EQ(row.scale, std::vector<float>{1});
  const std::vector<int8_t> head(row.q.begin(), row.q.begin() + 8);
  EXPECT_EQ(head, (std::vector<int8_t>{127, 0, 2, -2, 126, -127, 4, 0}));
}

// x is multiplied by 127 / amax. A division by the stored scale gives other codes: with amax 11,
// 5.5 is 63.5000038 by the product and 63.4999962 by the quotient.
TEST(Canonical, QuantizeMultipliesByTheInverse) {
  std::vector<float> x(32, 0.0F);
  for (const float amax : {9.0F, 11.0F, 13.0F}) {
    x[7] = -amax;
    x[8] = amax / 2;
    EXPECT_EQ(quantize_row(x.data(), 32, 32).q[8], 64) << amax;
    EXPECT_EQ(quantize_row(x.data(), 32, 32).scale[0], amax / 127.0F);
  }
}

TEST(Canonical, BlocksAreScaledAlone) {
  std::vector<float> x(64, 1.0F);
  for (int j = 32; j < 64; ++j) x[j] = -4.0F;
  const QuantRow row = quantize_row(x.data(), 64, 32);
  EXPECT_EQ(row.scale, (std::vector<float>{1.0F / 127, 4.0F / 127}));
  EXPECT_EQ(row.q[31], 127);
  EXPECT_EQ(row.q[32], -127);
}

TEST(Canonical, ZeroAndTinyBlocksAreZero) {
  for (float value : {0.0F, -0.0F, std::numeric_limits<float>::denorm_min(), 0x1.fffffep-101F}) {
    const std::vector<float> x(256, value);
    const QuantRow row = quantize_row(x.data(), 256, 256);
    EXPECT_EQ(bits(row.scale[0]), 0U) << value;
    EXPECT_EQ(row.q, std::vector<int8_t>(256));
  }
  const std::vector<float> x(256, -0x1p-100F);
  const QuantRow row = quantize_row(x.data(), 256, 256);
  EXPECT_EQ(row.scale[0], 0x1p-100F / 127);
  EXPECT_EQ(row.q, std::vector<int8_t>(256, -127));
}

TEST(Canonical, HugeBlocksAreExactAtTheEnd) {
  std::vector<float> x(32, std::numeric_limits<float>::max());
  x[3] = -x[3];
  const QuantRow row = quantize_row(x.data(), 32, 32);
  EXPECT_EQ(row.scale[0], std::numeric_limits<float>::max() / 127);
  EXPECT_EQ(row.q[0], 127);
  EXPECT_EQ(row.q[3], -127);
}

TEST(Canonical, WhatIsNotFiniteMakesTheProductNan) {
  const std::vector<std::byte> weights(34 * 3);  // zeros: even they do not hide it
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> x(96, 1.0F);
    x[40] = bad;
    const QuantRow row = quantize_row(x.data(), 96, 32);
    EXPECT_EQ(bits(row.scale[1]), 0x7FC00000U);
    EXPECT_EQ(row.q[40], 0);
    EXPECT_EQ(row.q[39], 0);
    EXPECT_EQ(row.q[0], 127);
    EXPECT_TRUE(std::isnan(dot_canonical(Type::kQ8_0, weights.data(), 96, row)));
  }
}

// 2^24 + 1 has no f32: the integer sum is exact, its conversion rounds once.
TEST(Canonical, LargeSumsRoundOnce) {
  std::vector<std::byte> weights(210);  // Q6_K
  store_f16(weights.data() + 208, 1.0F);
  QuantRow x{std::vector<int8_t>(256, 127), {1.0F}, 256};
  for (int j = 0; j < 256; ++j) {
    // code -32 everywhere, scale -128 in 15 groups; the last group's scale is 1.
    if (j < 16) store_u8(weights.data() + 192 + j, j < 15 ? 0x80U : 1U);
  }
  // 15 * 16 * 32 * 128 * 127 - 16 * 32 * 127
  const int32_t exact = 15 * 16 * 32 * 128 * 127 - 16 * 32 * 127;
  EXPECT_EQ(dot_canonical(Type::kQ6_K, weights.data(), 256, x), static_cast<float>(exact));
  x.q[255] = 126;
  EXPECT_EQ(dot_canonical(Type::kQ6_K, weights.data(), 256, x), static_cast<float>(exact + 32));
}

TEST(Canonical, FloatDotOfNothingIsZero) {
  EXPECT_EQ(bits(dot_float(nullptr, nullptr, 0)), 0U);
  EXPECT_EQ(activation_block(Type::kQ4_K), 256);
  EXPECT_EQ(activation_block(Type::kNVFP4), 32);
  EXPECT_EQ(activation_block(Type::kQ1_0), 32);
}

}  // namespace
}  // namespace strata::quant
