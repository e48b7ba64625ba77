#include "strata/kernels/ops/matmul.h"

#include <gtest/gtest.h>

#include "strata/base/format.h"
#include "strata/kernels/test_machines.h"

// The ops on matrices and rows: every backend gives the bits of the plain one. The products
// themselves, type by type, are in cpu/matmul_test.cpp.
namespace strata::kernels {
namespace {

using quant::Type;
using testing::Machine;
using testing::Outputs;

constexpr float kUnwritten = -7.5f;

std::vector<float> unwritten(int64_t n) {
  return std::vector<float>(static_cast<size_t>(n), kUnwritten);
}

TEST(MatMulOp, SeveralMatricesOfOneInput) {
  testing::Rng rng(1);
  // Block sizes 32 and 256 and floats in one call: the input is quantised twice, or not at all.
  const std::vector<std::vector<Type>> mixes = {
      {Type::kF32},
      {Type::kQ8_0, Type::kQ4_K},
      {Type::kQ6_K, Type::kF16, Type::kIQ4_NL, Type::kBF16}};
  for (const std::vector<Type>& types : mixes) {
    for (int n_rows : {0, 1, 2, 3, 7, 33}) {
      const int cols = 512, max_rows = n_rows + 2;
      std::vector<testing::TestWeight> weights;
      for (size_t i = 0; i < types.size(); ++i) {
        const int rows[] = {1, 16, 17, 37};
        weights.emplace_back(rng, types[i], rows[i], cols);
      }
      std::vector<float> x = testing::normal(rng, int64_t{max_rows} * cols);
      const int32_t count = n_rows;
      testing::expect_same(format("{} matrices, {} rows", types.size(), n_rows), [&](Machine& m) {
        MatMul args{.n_rows = &count,
                    .x = View<const float>(x.data(), {max_rows, cols}),
                    .n_out = static_cast<int>(types.size())};
        std::vector<std::vector<float>> y;
        for (const testing::TestWeight& w : weights) {
          y.push_back(unwritten(int64_t{max_rows} * w.w.rows));
        }
        for (size_t i = 0; i < weights.size(); ++i) {
          args.out[i] = {weights[i].w, View<float>(y[i].data(), {max_rows, weights[i].w.rows})};
        }
        m.run(m.ops().matmul, args);
        Outputs out;
        for (const auto& values : y) out.add("y", values);
        EXPECT_EQ(y.back().back(), kUnwritten) << "a row that does not count was written";
        return out;
      });
    }
  }
}

TEST(MatMulOp, FactorAndBrokenInput) {
  testing::Rng rng(2);
  const float factor = 0.37f;
  for (Type type : {Type::kF32, Type::kBF16, Type::kQ8_0, Type::kQ4_K}) {
    testing::TestWeight w(rng, type, 19, 256);
    w.w.scale = &factor;
    std::vector<float> x = testing::normal(rng, 4 * 256);
    testing::salt(rng, x, 50, true);
    const int32_t count = 4;
    testing::expect_same(std::string(quant::name(type)), [&](Machine& m) {
      std::vector<float> y = unwritten(4 * 19);
      m.run(m.ops().matmul, MatMul{.n_rows = &count,
                                   .x = View<const float>(x.data(), {4, 256}),
                                   .out = {{{w.w, View<float>(y.data(), {4, 19})}}},
                                   .n_out = 1});
      Outputs out;
      out.add("y", y);
      return out;
    });
  }
}

TEST(MatMulOp, OddWidthsOfFloatWeights) {
  testing::Rng rng(3);
  const int32_t count = 3;
  for (Type type : {Type::kF32, Type::kF16, Type::kBF16}) {
    for (int cols : {1, 7, 31, 32, 33, 157}) {
      const testing::TestWeight w(rng, type, 5, cols);
      const std::vector<float> x = testing::normal(rng, int64_t{3} * cols);
      testing::expect_same(format("{} x {}", quant::name(type), cols), [&](Machine& m) {
        std::vector<float> y = unwritten(15);
        m.run(m.ops().matmul, MatMul{.n_rows = &count,
                                     .x = View<const float>(x.data(), {3, cols}),
                                     .out = {{{w.w, View<float>(y.data(), {3, 5})}}},
                                     .n_out = 1});
        Outputs out;
        out.add("y", y);
        return out;
      });
    }
  }
}

TEST(EmbedOp, CopiesDecodedRows) {
  testing::Rng rng(4);
  for (Type type : {Type::kF32, Type::kF16, Type::kQ8_0, Type::kQ6_K}) {
    const int cols = 256;
    const testing::TestWeight table(rng, type, 11, cols);
    const std::vector<int32_t> ids = {10, 0, 3, 3, 7};
    for (int copies : {1, 4}) {
      const int32_t count = 4;
      testing::expect_same(format("{} x {}", quant::name(type), copies), [&](Machine& m) {
        std::vector<float> y = unwritten(int64_t{5} * copies * cols);
        m.run(m.ops().embed, Embed{.n_rows = &count,
                                   .id = View<const int32_t>(ids.data(), {5}),
                                   .table = table.w,
                                   .out = View<float>(y.data(), {5, copies, cols}),
                                   .copies = copies});
        EXPECT_EQ(y.back(), kUnwritten);
        Outputs out;
        out.add("y", y);
        return out;
      });
    }
  }
}

TEST(GatherOp, RowsSideBySide) {
  testing::Rng rng(5);
  for (Type type : {Type::kF32, Type::kBF16, Type::kIQ4_NL}) {
    const int cols = 32, heads = 3;
    const testing::TestWeight table(rng, type, 100, cols);
    std::vector<int64_t> index;
    for (int i = 0; i < 8 * heads; ++i) index.push_back(static_cast<int64_t>(rng() % 100));
    const int32_t count = 7;
    testing::expect_same(std::string(quant::name(type)), [&](Machine& m) {
      std::vector<float> y = unwritten(8 * heads * cols);
      m.run(m.ops().gather, Gather{.n_rows = &count,
                                   .index = View<const int64_t>(index.data(), {8, heads}),
                                   .table = table.w,
                                   .out = View<float>(y.data(), {8, heads * cols})});
      EXPECT_EQ(y.back(), kUnwritten);
      Outputs out;
      out.add("y", y);
      return out;
    });
  }
}

TEST(CopyRowsAndZero, DoWhatTheySay) {
  testing::Rng rng(6);
  const std::vector<float> x = testing::normal(rng, 6 * 2 * 5);
  const std::vector<int32_t> index = {5, 0, 5, 2};
  for (const auto& m : testing::machines()) {
    const int32_t count = 3;
    std::vector<float> y = unwritten(4 * 10);
    m->run(m->ops().copy_rows, CopyRows{.n_rows = &count,
                                        .index = View<const int32_t>(index.data(), {4}),
                                        .x = View<const float>(x.data(), {6, 2, 5}),
                                        .out = View<float>(y.data(), {4, 2, 5})});
    for (size_t i = 0; i < 40; ++i) {
      const size_t row = i / 10;
      const float expected =
          row < 3 ? x[static_cast<size_t>(index[row]) * 10 + i % 10] : kUnwritten;
      EXPECT_EQ(y[i], expected) << m->name() << " " << i;
    }
    std::vector<float> back = unwritten(6 * 10);
    const std::vector<int32_t> to = {4, 0, 3, 9};
    m->run(m->ops().scatter_rows, ScatterRows{.n_rows = &count,
                                              .index = View<const int32_t>(to.data(), {4}),
                                              .x = View<const float>(y.data(), {4, 2, 5}),
                                              .out = View<float>(back.data(), {6, 2, 5})});
    for (size_t i = 0; i < 60; ++i) {
      const auto* const from = std::find(to.data(), to.data() + 3, static_cast<int32_t>(i / 10));
      const auto row = static_cast<size_t>(from - to.data());
      EXPECT_EQ(back[i], row < 3 ? y[row * 10 + i % 10] : kUnwritten) << m->name() << " " << i;
    }
    m->run(m->ops().zero, Zero{.out = View<float>(y.data(), {3, 10})});
    for (size_t i = 0; i < 40; ++i) EXPECT_EQ(y[i], i < 30 ? 0.0f : kUnwritten) << m->name();
  }
}

}  // namespace
}  // namespace strata::kernels
