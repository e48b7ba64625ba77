#include "strata/quant/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace strata::quant {
namespace {

uint32_t bits(float f) { return std::bit_cast<uint32_t>(f); }
uint16_t u16(uint32_t x) { return static_cast<uint16_t>(x); }

// The value of a finite half by the definition of the format.
double half_value(uint32_t h) {
  const int exponent = static_cast<int>((h >> 10) & 31U);
  const int mantissa = static_cast<int>(h & 0x3FFU);
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (h & 0x8000U) != 0 ? -magnitude : magnitude;
}

TEST(Half, EveryHalfToFloatAndBack) {
  for (uint32_t h = 0; h <= 0xFFFFU; ++h) {
    const float f = f16_to_f32(u16(h));
    if ((h & 0x7C00U) != 0x7C00U) {
      ASSERT_EQ(f, half_value(h)) << h;
      ASSERT_EQ(std::signbit(f), (h & 0x8000U) != 0) << h;
      ASSERT_EQ(f32_to_f16(f), h);
    } else if ((h & 0x3FFU) == 0) {
      ASSERT_TRUE(std::isinf(f)) << h;
      ASSERT_EQ(f32_to_f16(f), h);
    } else {
      ASSERT_TRUE(std::isnan(f)) << h;
      ASSERT_EQ(f32_to_f16(f), h | 0x200U) << "a NaN keeps its payload and becomes quiet";
    }
  }
}

// Between two neighbours: the middle goes to the even one, a hair beside it to the nearer one.
TEST(Half, RoundsToNearestTiesToEven) {
  for (uint32_t h = 0; h < 0x7BFFU; ++h) {
    const auto middle = static_cast<float>((half_value(h) + half_value(h + 1)) / 2);
    ASSERT_EQ(f32_to_f16(middle), h % 2 == 0 ? h : h + 1);
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0F)), h);
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, INFINITY)), h + 1);
    ASSERT_EQ(f32_to_f16(-middle), (h % 2 == 0 ? h : h + 1) | 0x8000U);
  }
  EXPECT_EQ(f32_to_f16(std::nextafter(65520.0F, 0.0F)), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7C00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::max()), 0x7C00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(f32_to_f16(-0.0F), 0x8000);
}

TEST(Bfloat, RoundTripAndRounding) {
  for (uint32_t h = 0; h <= 0xFFFFU; ++h) {
    const float f = bf16_to_f32(u16(h));
    ASSERT_EQ(bits(f), h << 16);
    if (!std::isnan(f)) {
      ASSERT_EQ(f32_to_bf16(f), h);
    }
  }
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F808000U)), 0x3F80) << "tie to even";
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F818000U)), 0x3F82) << "tie to even";
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F808001U)), 0x3F81);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3F817FFFU)), 0x3F81);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x7F800001U)), 0x7FC0) << "NaN never turns infinite";
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0xFFFFFFFFU)), 0xFFFF);
}

TEST(ScaleBytes, ByTheirFormulas) {
  for (int e = 0; e <= 255; ++e) {
    EXPECT_EQ(e8m0_half_to_f32(static_cast<uint8_t>(e)), std::ldexp(1.0, e - 128)) << e;
  }
  for (int x = 0; x <= 255; ++x) {
    const int exponent = (x >> 3) & 15;
    const int mantissa = x & 7;
    double expected =
        exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(1 + mantissa / 8.0, exponent - 7);
    if ((x & 127) == 127) expected = 0;
    EXPECT_EQ(ue4m3_to_f32(static_cast<uint8_t>(x)), expected) << x;
  }
}

}  // namespace
}  // namespace strata::quant
