#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "strata/kernels/cpu/isa/row_fns.h"
#include "strata/kernels/test_machines.h"

// The scalar functions against std:: in double, and their vectorised builds against the scalar
// ones.
namespace strata::kernels {
namespace {
#include "strata/kernels/canonical_math.inl"

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Distance of got from the exact value in units of the last place of the float nearest to it.
double ulps(float got, double exact) {
  const float near = static_cast<float>(exact);
  const double unit =
      std::max(static_cast<double>(std::nextafter(std::abs(near), kInf)) - std::abs(near),
               static_cast<double>(std::numeric_limits<float>::denorm_min()));
  return std::abs(static_cast<double>(got) - exact) / unit;
}

// About n floats of every exponent and sign, and what matters at the ends.
std::vector<float> sweep(uint32_t step) {
  std::vector<float> values = {0.0f,  -0.0f, kInf,    -kInf,   kNan,     1.0f,      -1.0f,
                               20.0f, 20.5f, 87.3f,   -87.3f,  88.3762f, 88.37621f, 88.7f,
                               88.8f, 90.0f, -87.31f, -103.9f, -104.0f,  3e38f,     -3e38f};
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += step) {
    values.push_back(bits_to_float(static_cast<uint32_t>(bits)));
  }
  return values;
}

TEST(CanonicalMath, ExpIsWithinTwoUnits) {
  double worst = 0;
  for (float x : sweep(10007)) {
    if (!(x >= -87.3f && x <= 88.37f)) continue;
    worst = std::max(worst, ulps(exp_c(x), std::exp(static_cast<double>(x))));
  }
  for (int i = -87300; i <= 88370; ++i) {
    const float x = static_cast<float>(i) * 1e-3f;
    worst = std::max(worst, ulps(exp_c(x), std::exp(static_cast<double>(x))));
  }
  EXPECT_LE(worst, 1.5);
  RecordProperty("worst_ulps", std::to_string(worst));
}

TEST(CanonicalMath, ExpAtTheEnds) {
  EXPECT_EQ(exp_c(0.0f), 1.0f);
  EXPECT_EQ(exp_c(-0.0f), 1.0f);
  EXPECT_EQ(exp_c(kInf), kInf);
  EXPECT_EQ(exp_c(-kInf), 0.0f);
  EXPECT_EQ(exp_c(1e30f), kInf);
  EXPECT_EQ(exp_c(-1e30f), 0.0f);
  EXPECT_TRUE(std::isnan(exp_c(kNan)));
  EXPECT_TRUE(std::isnan(exp_c(-kNan)));
  // Never falls, and never negative: a softmax relies on both.
  float last = 0;
  for (float x = -110.0f; x < 100.0f; x += 0.013f) {
    EXPECT_GE(exp_c(x), last * (1 - 2e-7f)) << x;
    last = exp_c(x);
  }
}

TEST(CanonicalMath, SigmoidAndSilu) {
  double worst = 0, worst_silu = 0;
  for (float x : sweep(10007)) {
    if (!(x >= -80 && x <= 1e30f)) continue;
    const double exact = 1 / (1 + std::exp(-static_cast<double>(x)));
    worst = std::max(worst, ulps(sigmoid_c(x), exact));
    if (std::abs(x) > 1e-30f) {
      worst_silu = std::max(worst_silu, ulps(silu_c(x), static_cast<double>(x) * exact));
    }
  }
  EXPECT_LE(worst, 4);
  EXPECT_LE(worst_silu, 5);
  EXPECT_EQ(sigmoid_c(kInf), 1.0f);
  EXPECT_EQ(sigmoid_c(-kInf), 0.0f);
  EXPECT_EQ(sigmoid_c(0.0f), 0.5f);
  EXPECT_EQ(silu_c(kInf), kInf);
  EXPECT_EQ(silu_c(-3e38f), 0.0f);  // the limit, not a large number times a tiny one
  EXPECT_TRUE(std::isnan(sigmoid_c(kNan)));
  EXPECT_TRUE(std::isnan(silu_c(kNan)));
}

TEST(CanonicalMath, LogIsWithinTwoUnits) {
  double worst = 0;
  for (float x : sweep(10007)) {
    if (!(x >= std::numeric_limits<float>::min() && x < kInf)) continue;
    worst = std::max(worst, ulps(log_c(x), std::log(static_cast<double>(x))));
  }
  // Around 1, where the result is small.
  for (int i = -200000; i <= 200000; ++i) {
    const float x = 1.0f + static_cast<float>(i) * 0x1p-24f * 8;
    worst = std::max(worst, ulps(log_c(x), std::log(static_cast<double>(x))));
  }
  EXPECT_LE(worst, 2);
  EXPECT_EQ(log_c(1.0f), 0.0f);
}

TEST(CanonicalMath, SoftplusIsWithinAFewUnits) {
  double worst = 0;
  for (float x : sweep(10007)) {
    if (!(x >= -87 && x <= 1e30f)) continue;
    // The model uses x itself above 20, where the difference is below a unit.
    worst = std::max(worst, ulps(softplus_c(x), std::log1p(std::exp(static_cast<double>(x)))));
    if (x > 700) break;
  }
  EXPECT_LE(worst, 5);
  EXPECT_EQ(softplus_c(-kInf), 0.0f);
  EXPECT_EQ(softplus_c(kInf), kInf);
  EXPECT_EQ(softplus_c(30.0f), 30.0f);
  EXPECT_TRUE(std::isnan(softplus_c(kNan)));
}

TEST(CanonicalMath, SumsAreTheOnesWrittenDown) {
  testing::Rng rng(1);
  for (int n : {1, 2, 31, 32, 33, 63, 64, 65, 157, 1000}) {
    const std::vector<float> a = testing::normal(rng, n), b = testing::normal(rng, n);
    std::array<float, 32> dot{}, sum{};
    for (int i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(i);
      dot[at % 32] = std::fma(a[at], b[at], dot[at % 32]);
      sum[at % 32] += a[at];
    }
    for (size_t width = 16; width > 0; width /= 2) {
      for (size_t l = 0; l < width; ++l) dot[l] += dot[l + width], sum[l] += sum[l + width];
    }
    EXPECT_EQ(dot_c(a.data(), b.data(), n), dot[0]) << n;
    EXPECT_EQ(sum_c(a.data(), n), sum[0]) << n;
  }
}

TEST(CanonicalMath, GumbelNoiseHasItsDistribution) {
  // P(G < x) = exp(-exp(-x)): a Kolmogorov-Smirnov distance of n draws below 1.63 / sqrt(n) is not
  // refuted at 1 %. The draws are fixed, so this either holds or does not.
  constexpr int kDraws = 20000;
  std::vector<float> draws;
  for (uint32_t i = 0; i < kDraws; ++i) draws.push_back(gumbel_c(42, i / 100, i % 100));
  std::sort(draws.begin(), draws.end());
  double distance = 0;
  for (size_t i = 0; i < draws.size(); ++i) {
    const double exact = std::exp(-std::exp(-static_cast<double>(draws[i])));
    distance = std::max({distance, std::abs(exact - static_cast<double>(i) / kDraws),
                         std::abs(exact - static_cast<double>(i + 1) / kDraws)});
  }
  EXPECT_LE(distance, 1.63 / std::sqrt(kDraws));
}

TEST(CanonicalMath, GumbelNoiseDependsOnEachPartOfItsKey) {
  EXPECT_EQ(gumbel_c(1, 2, 3), gumbel_c(1, 2, 3));
  EXPECT_NE(gumbel_c(1, 2, 3), gumbel_c(2, 2, 3));
  EXPECT_NE(gumbel_c(1, 2, 3), gumbel_c(1, 3, 3));
  EXPECT_NE(gumbel_c(1, 2, 3), gumbel_c(1, 2, 4));
  for (uint32_t i = 0; i < 100000; ++i) {
    const float g = gumbel_c(7, 0, i);
    ASSERT_TRUE(g > -3.0f && g < 16.64f) << g;
  }
}

std::vector<std::pair<std::string, const cpu::RowFns*>> builds() {
  std::vector<std::pair<std::string, const cpu::RowFns*>> all;
  for (CpuLevel level : testing::levels_here()) {
    all.emplace_back(name(level),
                     level == CpuLevel::kAvx512 ? &cpu::row_fns_avx512() : &cpu::row_fns_avx2());
  }
  return all;
}

void expect_bits(const std::string& what, float x, float got, float expected) {
  ASSERT_TRUE(float_to_bits(got) == float_to_bits(expected) ||
              (std::isnan(got) && std::isnan(expected)))
      << what << "(" << x << ") is " << got << ", scalar " << expected;
}

// Every exponent and sign through the vectorised exp, log and what is made of them.
TEST(CanonicalMath, VectorBuildsGiveTheScalarBits) {
  const std::vector<float> x = sweep(65537 * 3);
  const int n = static_cast<int>(x.size());
  const std::vector<float> ones(x.size(), 1.0f), zeros(x.size(), 0.0f);
  std::vector<float> y(x.size()), z(x.size());
  for (const auto& [isa, fns] : builds()) {
    y = x;
    fns->silu_scaled(y.data(), n, 1.0f);
    for (size_t i = 0; i < x.size(); ++i) expect_bits(isa + " silu", x[i], y[i], silu_c(x[i]));
    y = x;
    fns->inject_gate(y.data(), n, 1.0f);
    for (size_t i = 0; i < x.size(); ++i) {
      expect_bits(isa + " gate", x[i], y[i], 2.0f * sigmoid_c(x[i]));
    }
    fns->delta_gates(x.data(), x.data(), ones.data(), zeros.data(), n, y.data(), z.data());
    for (size_t i = 0; i < x.size(); ++i) {
      expect_bits(isa + " decay", x[i], y[i], exp_c(softplus_c(x[i])));
      expect_bits(isa + " beta", x[i], z[i], sigmoid_c(x[i]));
    }
    // A softmax whose largest logit is 0 is exp over its sum.
    std::vector<float> below;
    for (float v : x) below.push_back(v <= 0 ? v : -1.0f);
    below[0] = 0;
    fns->softmax(below.data(), n, y.data());
    for (size_t i = 0; i < x.size(); ++i) z[i] = exp_c(below[i] - 0.0f);
    const float sum = sum_c(z.data(), n);
    for (size_t i = 0; i < x.size(); ++i) {
      expect_bits(isa + " softmax", below[i], y[i], z[i] / sum);
    }
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace strata::kernels
