#include "strata/quant/encode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "strata/base/error.h"
#include "strata/quant/decode.h"

namespace strata::quant {
namespace {

constexpr size_t kRow = 1024;
constexpr Type kEncoded[] = {Type::kF32,  Type::kF16,  Type::kBF16, Type::kQ4_0,
                             Type::kQ8_0, Type::kQ4_K, Type::kQ6_K, Type::kIQ4_NL};

std::vector<float> round_trip(Type type, const std::vector<float>& x) {
  std::vector<std::byte> bytes(row_bytes(type, x.size()));
  encode(type, x, bytes.data());
  std::vector<float> out(x.size());
  decode(type, bytes.data(), out);
  return out;
}

std::vector<float> normal_row(uint32_t seed, float sigma) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, sigma);
  std::vector<float> x(kRow);
  for (float& v : x) v = normal(random);
  return x;
}

double norm(const std::vector<float>& x) {
  return std::sqrt(std::transform_reduce(x.begin(), x.end(), 0.0, std::plus<>(),
                                         [](double v) { return v * v; }));
}

// The error of a value at most, as a share of the largest magnitude of its block.
double worst_share(Type type) {
  switch (type) {
    case Type::kF32:
      return 0;
    case Type::kF16:
      return 0x1p-11;
    case Type::kBF16:
      return 0x1p-8;
    // Half a step of the code; the scale's own f16 rounding moves 127 codes by 2^-11 each.
    case Type::kQ8_0:
      return 0.5 / 127 + 0x1p-11;
    // A whole step: the side opposite to the farthest value ends one code earlier.
    case Type::kQ4_0:
      return 1.0 / 8 + 0x1p-10;
    // Half the widest gap; the far end of the short side is 113 of 127.
    case Type::kIQ4_NL:
      return 14.0 / 127 + 0x1p-10;
    // A whole step of 1/32, and half a step of the group scale times 32 codes.
    case Type::kQ6_K:
      return 1.0 / 32 + 32 * 0.5 / 128 / 32 + 0x1p-10;
    // Over a range of 2: half a step of 1/15, 15 codes times half a scale step, half a min step.
    case Type::kQ4_K:
      return 2 * (0.5 / 15 + 0.5 / 63) + 0.5 / 63 + 0x1p-9;
    default:
      return -1;
  }
}

// Half the distance of subnormal halves, where a share means nothing.
double least_step(Type type) { return type == Type::kF16 ? 0x1p-25 : 0; }

// Relative error of a normal row, root mean square. The figures are what these encoders reach, with
// a tenth of room.
double rms_share(Type type) {
  switch (type) {
    case Type::kF32:
      return 0;
    case Type::kF16:
      return 2.5e-4;
    case Type::kBF16:
      return 1.9e-3;
    case Type::kQ8_0:
      return 6.3e-3;
    case Type::kQ4_0:
      return 0.0993;
    case Type::kIQ4_NL:
      return 0.094;
    case Type::kQ6_K:
      return 0.0213;
    case Type::kQ4_K:
      return 0.0894;
    default:
      return -1;
  }
}

TEST(Encode, RoundTripErrorsStayWithinTheFormat) {
  for (Type type : kEncoded) {
    SCOPED_TRACE(name(type));
    ASSERT_TRUE(can_encode(type));
    const auto block = static_cast<size_t>(traits(type).block_values);
    for (uint32_t seed = 0; seed < 20; ++seed) {
      const std::vector<float> x = normal_row(seed, 0.02F);
      const std::vector<float> y = round_trip(type, x);
      std::vector<float> error(kRow);
      for (size_t j = 0; j < kRow; ++j) {
        error[j] = y[j] - x[j];
        const auto begin = x.begin() + static_cast<ptrdiff_t>(j / block * block);
        const float amax =
            std::abs(*std::max_element(begin, begin + static_cast<ptrdiff_t>(block),
                                       [](float a, float b) { return std::abs(a) < std::abs(b); }));
        ASSERT_LE(std::abs(error[j]), worst_share(type) * amax + least_step(type))
            << j << " of seed " << seed;
      }
      EXPECT_LE(norm(error), rms_share(type) * norm(x)) << "seed " << seed;
    }
  }
}

// Values that a block can hold come back as they were.
TEST(Encode, ValuesOnTheGridAreExact) {
  std::mt19937 random(3);
  const auto on_grid = [&random](size_t n, int low, int high, float step) {
    std::vector<float> x(n);
    for (float& v : x) {
      v = step * static_cast<float>(low + static_cast<int>(random() % (high - low + 1)));
    }
    return x;
  };
  std::vector<float> x = on_grid(32, -8, 7, 0.25F);
  x[9] = -2;
  EXPECT_EQ(round_trip(Type::kQ4_0, x), x);
  x = on_grid(32, -127, 127, 0.5F);
  x[31] = 63.5F;
  EXPECT_EQ(round_trip(Type::kQ8_0, x), x);
  x = {-127, -104, -83, -65, -49, -35, -22, -10, 1,   13,  25,  38,  53,  69,  89,   113,
       113,  89,   69,  53,  38,  25,  13,  1,   -10, -22, -35, -49, -65, -83, -104, -127};
  EXPECT_EQ(round_trip(Type::kIQ4_NL, x), x);
  // d = 1/128, the first group at scale -128, the others at -64.
  x = on_grid(256, -32, 31, 0.5F);
  for (int j = 0; j < 16; ++j) x[j] *= 2;
  for (int g = 0; g < 16; ++g) x[16 * g + 5] = g == 0 ? -32.0F : -16.0F;
  EXPECT_EQ(round_trip(Type::kQ6_K, x), x);
  // d = 1 and dmin = 1: scale 63 and 21, min 63 and 42.
  x = on_grid(256, 0, 15, 63);
  for (int j = 0; j < 256; ++j) {
    if (j % 32 == 0) x[j] = 0;
    if (j % 32 == 1) x[j] = 15 * 63;
    x[j] -= 63;
    if (j >= 32) x[j] = (x[j] + 63) / 3 - 42;
  }
  EXPECT_EQ(round_trip(Type::kQ4_K, x), x);
}

TEST(Encode, ZeroTinyAndHugeRowsStayFinite) {
  const float max = std::numeric_limits<float>::max();
  for (Type type : kEncoded) {
    SCOPED_TRACE(name(type));
    std::vector<float> x(256, 0.0F);
    EXPECT_EQ(round_trip(type, x), x);
    x.assign(256, std::numeric_limits<float>::denorm_min());
    x[7] = -0x1p-140F;
    for (float v : round_trip(type, x)) EXPECT_LE(std::abs(v), 0x1p-140F);
    for (float huge : {70000.0F, max, -max}) {
      x.assign(256, huge);
      x[3] = -huge;
      x[200] = 1;
      const std::vector<float> y = round_trip(type, x);
      for (int j : {0, 3, 255}) {
        EXPECT_TRUE(std::isfinite(y[j])) << huge;
        EXPECT_EQ(std::signbit(y[j]), std::signbit(x[j])) << huge;
        EXPECT_GE(std::abs(y[j]), 0.7F * 65504) << huge;
      }
    }
  }
}

TEST(Encode, ConstantAndOneSidedRows) {
  for (Type type : kEncoded) {
    SCOPED_TRACE(name(type));
    for (float value : {-0.03F, 0.03F, 1.0F}) {
      const std::vector<float> x(256, value);
      for (float v : round_trip(type, x)) {
        EXPECT_NEAR(v, value, std::abs(value) * worst_share(type));
      }
      std::vector<float> ramp(256);
      for (int j = 0; j < 256; ++j) ramp[j] = value * static_cast<float>(256 + j) / 512;
      const std::vector<float> y = round_trip(type, ramp);
      for (int j = 0; j < 256; ++j) {
        EXPECT_NEAR(y[j], ramp[j], std::abs(value) * worst_share(type)) << j;
      }
    }
  }
}

TEST(Encode, RefusesWhatItCannotHold) {
  std::vector<std::byte> out(4096);
  for (Type type : kEncoded) {
    SCOPED_TRACE(name(type));
    for (float bad : {NAN, -NAN, INFINITY, -INFINITY}) {
      std::vector<float> x(512, 1.0F);
      x[300] = bad;
      try {
        encode(type, x, out.data());
        FAIL() << bad;
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
        EXPECT_NE(e.message().find("value 300 "), std::string::npos) << e.message();
      }
    }
  }
  EXPECT_THROW(encode(Type::kQ4_K, std::vector<float>(32), out.data()), Error);
  EXPECT_FALSE(can_encode(Type::kIQ2_XXS));
  try {
    encode(Type::kIQ2_XXS, std::vector<float>(256), out.data());
    FAIL() << "there is no encoder";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUnsupported);
  }
}

}  // namespace
}  // namespace strata::quant
