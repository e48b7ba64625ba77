#include "strata/model/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

namespace strata::model {
namespace {

std::vector<float> row(const Rope& rope, Rope::Position position) {
  std::vector<float> out(static_cast<size_t>(2 * rope.pairs()));
  rope.fill(position, out);
  return out;
}

TEST(Rope, RotatesByPositionTimesFrequency) {
  const Rope rope({.dims = 64, .base = 1e7, .sections = {11, 11, 10, 0}});
  ASSERT_EQ(rope.pairs(), 32);
  for (int32_t p : {0, 1, 17, 4096, 262143}) {
    const std::vector<float> got = row(rope, {p, p, p});
    for (size_t i = 0; i < 32; ++i) {
      const double angle = p * std::pow(1e7, -2.0 * static_cast<double>(i) / 64);
      EXPECT_EQ(got[i], static_cast<float>(std::cos(angle))) << p << " " << i;
      EXPECT_EQ(got[32 + i], static_cast<float>(std::sin(angle))) << p << " " << i;
    }
  }
}

// Which of the three positions each pair turns by: interleaved, and time where a section has ended.
std::vector<int> axes(int dims, std::vector<int> sections) {
  const Rope rope({.dims = dims, .base = 1e4, .sections = std::move(sections)});
  std::vector<int> found;
  for (int i = 0; i < rope.pairs(); ++i) {
    int axis = -1;
    for (int a = 0; a < 3; ++a) {
      Rope::Position p = {0, 0, 0};
      p[static_cast<size_t>(a)] = 1;
      if (row(rope, p)[static_cast<size_t>(rope.pairs() + i)] != 0) {
        EXPECT_EQ(axis, -1) << "pair " << i << " turns by two axes";
        axis = a;
      }
    }
    found.push_back(axis);
  }
  return found;
}

TEST(Rope, SectionsAreInterleaved) {
  EXPECT_EQ(axes(16, {3, 3, 2, 0}), (std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1}));
  EXPECT_EQ(axes(8, {2, 1, 1, 0}), (std::vector<int>{0, 1, 2, 0}));
  EXPECT_EQ(axes(8, {4, 0, 0, 0}), (std::vector<int>{0, 0, 0, 0}));
  const std::vector<int> real = axes(64, {11, 11, 10, 0});
  int counts[3] = {};
  for (size_t i = 0; i < real.size(); ++i) {
    ++counts[real[i]];
    EXPECT_EQ(real[i], i == 30 ? 0 : static_cast<int>(i % 3)) << i;
  }
  EXPECT_EQ(counts[0], 11);
  EXPECT_EQ(counts[1], 11);
  EXPECT_EQ(counts[2], 10);
}

// The frequencies, from what a turn by one position does; undone by the attention factor.
std::vector<double> frequencies(const Rope& rope, double factor) {
  const std::vector<float> one = row(rope, {1, 1, 1});
  std::vector<double> f;
  for (int i = 0; i < rope.pairs(); ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_NEAR(std::hypot(one[at], one[at + static_cast<size_t>(rope.pairs())]), factor, 1e-6);
    f.push_back(std::atan2(one[at + static_cast<size_t>(rope.pairs())], one[at]));
  }
  return f;
}

TEST(Rope, YarnOfTheRealModel) {
  // The ramp of d = 64, base 1e7, context 262144 runs from pair 14 to pair 22.
  const double s = 4;
  const Rope rope({.dims = 64,
                   .base = 1e7,
                   .sections = {32, 0, 0, 0},
                   .yarn_factor = s,
                   .yarn_context = 262144});
  const std::vector<double> f = frequencies(rope, 1 + 0.1 * std::log(s));
  for (size_t i = 0; i < 32; ++i) {
    const double plain = std::pow(1e7, -2.0 * static_cast<double>(i) / 64);
    const double ramp = std::clamp((static_cast<double>(i) - 14) / (22 - 14), 0.0, 1.0);
    const double expected = plain * (1 - ramp) + plain / s * ramp;
    EXPECT_NEAR(f[i] / expected, 1, 1e-6) << i;
  }
}

TEST(Rope, YarnClampsTheRampOfASmallModel) {
  // d = 8, base 1e4, context 64: the formula gives -1 for the lower end, clamped to 0, and 2 for
  // the upper one.
  const double base = 1e4, length = 64, d = 8, s = 4;
  const auto corr = [&](double n) {
    return d * std::log(length / (2 * std::numbers::pi * n)) / (2 * std::log(base));
  };
  ASSERT_LT(std::floor(corr(32)), 0);
  const double high = std::ceil(corr(1));
  const Rope rope(
      {.dims = 8, .base = base, .sections = {4, 0, 0, 0}, .yarn_factor = s, .yarn_context = 64});
  const std::vector<double> f = frequencies(rope, 1 + 0.1 * std::log(s));
  for (size_t i = 0; i < 4; ++i) {
    const double plain = std::pow(base, -2.0 * static_cast<double>(i) / d);
    const double ramp = std::clamp(static_cast<double>(i) / high, 0.0, 1.0);
    EXPECT_NEAR(f[i] / (plain * (1 - ramp) + plain / s * ramp), 1, 1e-6) << i;
  }
}

TEST(Rope, AFactorOfOneIsOff) {
  const Rope off({.dims = 16, .base = 1e6, .sections = {8, 0, 0, 0}});
  const Rope one(
      {.dims = 16, .base = 1e6, .sections = {8, 0, 0, 0}, .yarn_factor = 1, .yarn_context = 64});
  for (int32_t p : {0, 5, 1000}) EXPECT_EQ(row(off, {p, p, p}), row(one, {p, p, p}));
}

}  // namespace
}  // namespace strata::model
