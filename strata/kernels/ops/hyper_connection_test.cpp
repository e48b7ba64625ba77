#include "strata/kernels/ops/hyper_connection.h"

#include <gtest/gtest.h>

#include <cmath>

#include "strata/base/format.h"
#include "strata/kernels/test_machines.h"

namespace strata::kernels {
namespace {

using quant::Type;
using testing::Machine;
using testing::Outputs;

constexpr float kEps = 1e-6f;

struct HcCase {
  int streams, width, rank, n_rows;
  Type type = Type::kF32;
  bool inject = true;
  bool salted = false;
};

void expect_read_parity(const HcCase& c, uint32_t seed) {
  testing::Rng rng(seed);
  const int wide = c.streams * c.width, max_rows = c.n_rows + 1;
  std::vector<float> residual = testing::normal(rng, int64_t{max_rows} * wide);
  if (c.salted) testing::salt(rng, residual, 20, c.n_rows > 2);
  const std::vector<float> norm = testing::normal(rng, wide);
  const testing::TestWeight down(rng, c.type, c.rank, wide, 0.3f), up(rng, c.type, wide, c.rank);
  testing::TestWeight inject;
  if (c.inject) inject = testing::TestWeight(rng, Type::kF32, c.streams, wide, 0.3f);
  const int32_t count = c.n_rows;
  testing::expect_same(
      format("{} streams of {}, rank {}, {} rows of {}", c.streams, c.width, c.rank, c.n_rows,
             quant::name(c.type)),
      [&](Machine& m) {
        std::vector<float> u(static_cast<size_t>(max_rows * c.width), -7.5f);
        std::vector<float> inj(static_cast<size_t>(max_rows * c.streams), -7.5f);
        m.run(m.ops().hc_read,
              HcRead{.n_rows = &count,
                     .residual = View<const float>(residual.data(), {max_rows, c.streams, c.width}),
                     .norm = norm.data(),
                     .down = down.w,
                     .up = up.w,
                     .inject = inject.w,
                     .eps = kEps,
                     .u = View<float>(u.data(), {max_rows, c.width}),
                     .inj = View<float>(inj.data(), {max_rows, c.streams})});
        EXPECT_EQ(u.back(), -7.5f);
        EXPECT_EQ(inj.back(), -7.5f);
        Outputs out;
        out.add("u", u);
        out.add("inj", inj);
        return out;
      });
}

TEST(HcReadOp, Parity) {
  uint32_t seed = 1;
  for (int streams : {1, 2, 4}) {
    for (int width : {1, 31, 63, 64, 65, 157}) {
      for (int n_rows : {1, 3}) expect_read_parity({streams, width, 16, n_rows}, ++seed);
    }
  }
  for (int rank : {1, 15, 16, 17, 33}) expect_read_parity({4, 64, rank, 2}, ++seed);
  for (int n_rows : {0, 2, 7, 33}) expect_read_parity({4, 64, 16, n_rows}, ++seed);
}

TEST(HcReadOp, ParityOfTypes) {
  uint32_t seed = 100;
  for (Type type : {Type::kF16, Type::kBF16, Type::kQ8_0, Type::kQ4_K}) {
    for (int n_rows : {1, 7}) {
      expect_read_parity({.streams = 4, .width = 128, .rank = 256, .n_rows = n_rows, .type = type},
                         ++seed);
    }
  }
}

TEST(HcReadOp, WithoutInjectAndWithOddValues) {
  uint32_t seed = 200;
  for (int n_rows : {1, 2, 7}) {
    expect_read_parity({.streams = 4, .width = 33, .rank = 8, .n_rows = n_rows, .inject = false},
                       ++seed);
    expect_read_parity({.streams = 4, .width = 33, .rank = 8, .n_rows = n_rows, .salted = true},
                       ++seed);
  }
}

// All streams at -0: the sum over the streams starts at +0 in every backend.
TEST(HcReadOp, NegativeZeros) {
  testing::Rng rng(5);
  const std::vector<float> residual(2 * 4 * 16, -0.0f), norm(64, 1.0f);
  const testing::TestWeight down(rng, Type::kF32, 8, 64), up(rng, Type::kF32, 64, 8);
  const int32_t count = 2;
  testing::expect_same("negative zeros", [&](Machine& m) {
    std::vector<float> u(32);
    m.run(m.ops().hc_read, HcRead{.n_rows = &count,
                                  .residual = View<const float>(residual.data(), {2, 4, 16}),
                                  .norm = norm.data(),
                                  .down = down.w,
                                  .up = up.w,
                                  .eps = kEps,
                                  .u = View<float>(u.data(), {2, 16})});
    Outputs out;
    out.add("u", u);
    return out;
  });
}

// The plain backend against the formula in double.
TEST(HcReadOp, IsTheFormula) {
  testing::Rng rng(6);
  constexpr int kStreams = 3, kWidth = 10, kRank = 5, kWide = kStreams * kWidth;
  const std::vector<float> h = testing::normal(rng, kWide), norm = testing::normal(rng, kWide);
  const testing::TestWeight down(rng, Type::kF32, kRank, kWide), up(rng, Type::kF32, kWide, kRank),
      inject(rng, Type::kF32, kStreams, kWide);
  const auto at = [](const testing::TestWeight& w, int r, int c) {
    float value;
    std::copy_n(w.w.data + (r * w.w.cols + c) * 4, 4, reinterpret_cast<std::byte*>(&value));
    return static_cast<double>(value);
  };
  const auto sigm = [](double x) { return 1 / (1 + std::exp(-x)); };
  std::vector<double> n(kWide), lo(kRank), u(kWidth), inj(kStreams);
  for (int s = 0; s < kStreams; ++s) {
    double sum = 0;
    for (int i = 0; i < kWidth; ++i) sum += std::pow(h[s * kWidth + i], 2);
    for (int i = s * kWidth; i < (s + 1) * kWidth; ++i) {
      n[i] = h[i] / std::sqrt(sum / kWidth + 1e-6) * norm[i];
    }
  }
  for (int r = 0; r < kRank; ++r) {
    for (int i = 0; i < kWide; ++i) lo[r] += at(down, r, i) * n[i] / kStreams;
    lo[r] *= sigm(lo[r]);
  }
  for (int s = 0; s < kStreams; ++s) {
    for (int i = 0; i < kWidth; ++i) {
      double m = 0;
      for (int r = 0; r < kRank; ++r) m += at(up, s * kWidth + i, r) * lo[r];
      u[i] += sigm(m) * n[s * kWidth + i] / kStreams;
    }
    double dot = 0;
    for (int i = 0; i < kWide; ++i) dot += at(inject, s, i) * n[i];
    inj[s] = 2 * sigm(dot / kStreams);
  }
  Machine& m = *testing::machines()[0];
  const int32_t count = 1;
  std::vector<float> got(kWidth), got_inj(kStreams);
  m.run(m.ops().hc_read, HcRead{.n_rows = &count,
                                .residual = View<const float>(h.data(), {1, kStreams, kWidth}),
                                .norm = norm.data(),
                                .down = down.w,
                                .up = up.w,
                                .inject = inject.w,
                                .eps = kEps,
                                .u = View<float>(got.data(), {1, kWidth}),
                                .inj = View<float>(got_inj.data(), {1, kStreams})});
  for (int i = 0; i < kWidth; ++i) EXPECT_NEAR(got[i], u[i], 1e-5) << i;
  for (int s = 0; s < kStreams; ++s) EXPECT_NEAR(got_inj[s], inj[s], 1e-5) << s;
}

TEST(HcWriteOp, Parity) {
  testing::Rng rng(7);
  for (int streams : {1, 2, 4}) {
    for (int width : {1, 7, 32, 33, 157}) {
      for (int n_rows : {0, 1, 3, 7}) {
        const int max_rows = n_rows + 1;
        const std::vector<float> inj = testing::normal(rng, max_rows * streams);
        std::vector<float> y = testing::normal(rng, int64_t{max_rows} * width);
        testing::salt(rng, y, 30, n_rows == 7);
        const std::vector<float> before = testing::normal(rng, int64_t{max_rows} * streams * width);
        const int32_t count = n_rows;
        testing::expect_same(format("{} x {}, {} rows", streams, width, n_rows), [&](Machine& m) {
          std::vector<float> h = before;
          m.run(m.ops().hc_write,
                HcWrite{.n_rows = &count,
                        .inj = View<const float>(inj.data(), {max_rows, streams}),
                        .y = View<const float>(y.data(), {max_rows, width}),
                        .residual = View<float>(h.data(), {max_rows, streams, width})});
          EXPECT_EQ(h.back(), before.back());
          Outputs out;
          out.add("h", h);
          return out;
        });
      }
    }
  }
}

TEST(DraftInputOp, ParityInBothForms) {
  testing::Rng rng(8);
  for (bool per_stream : {false, true}) {
    for (int streams : {1, 2, 4}) {
      for (int width : {1, 31, 64, 157}) {
        const int max_rows = 4, wide = streams * width;
        const std::vector<float> e = testing::normal(rng, max_rows * width),
                                 h = testing::normal(rng, max_rows * wide),
                                 enorm = testing::normal(rng, width),
                                 hnorm = testing::normal(rng, wide);
        const int32_t count = 3;
        testing::expect_same(format("{} x {}", streams, width), [&](Machine& m) {
          std::vector<float> pairs(static_cast<size_t>(2 * max_rows * wide), -7.5f);
          m.run(m.ops().draft_input,
                DraftInput{.n_rows = &count,
                           .e = View<const float>(e.data(), {max_rows, width}),
                           .residual = View<const float>(h.data(), {max_rows, streams, width}),
                           .enorm = enorm.data(),
                           .hnorm = hnorm.data(),
                           .eps = kEps,
                           .per_stream = per_stream,
                           .out = View<float>(pairs.data(), {max_rows, streams, 2 * width})});
          EXPECT_EQ(pairs.back(), -7.5f);
          Outputs out;
          out.add("pairs", pairs);
          return out;
        });
      }
    }
  }
}

}  // namespace
}  // namespace strata::kernels
