#include "strata/kernels/cpu/matmul.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "strata/quant/canonical.h"
#include "strata/quant/half.h"
#include "strata/quant/tiles.h"

namespace strata::kernels::cpu {
namespace {

using quant::Type;
using quant::TypeClass;
using quant::TypeTraits;

// Equal bits; of NaN only that both are, since the payload depends on the order of operands.
bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

// Selects a table for one scope.
class WithTable {
 public:
  explicit WithTable(const DotTable* table) : before_(dot_table()) { use_dot_table(table); }
  ~WithTable() { use_dot_table(before_); }
  WithTable(const WithTable&) = delete;
  WithTable& operator=(const WithTable&) = delete;

 private:
  const DotTable* before_;
};

std::vector<const DotTable*> tables_and_plain() {
  std::vector<const DotTable*> all(dot_tables().begin(), dot_tables().end());
  all.push_back(nullptr);
  return all;
}
std::string table_name(const DotTable* table) { return table ? table->name : "plain"; }

// Random blocks: every bit pattern is one. Scales are kept finite, else one result in ten is NaN
// and proves little.
std::vector<std::byte> random_weights(const TypeTraits& t, int rows, int cols, std::mt19937& rng) {
  const size_t row_bytes = quant::row_bytes(t.type, static_cast<uint64_t>(cols));
  std::vector<std::byte> w(static_cast<size_t>(rows) * row_bytes);
  for (std::byte& b : w) b = static_cast<std::byte>(rng());
  if (t.type_class == TypeClass::kFloat) {
    std::normal_distribution<float> normal;
    for (size_t i = 0; i * static_cast<size_t>(t.block_bytes) < w.size(); ++i) {
      const float x = normal(rng);
      if (t.type == Type::kF32) std::memcpy(&w[4 * i], &x, 4);
      const uint16_t half = t.type == Type::kF16 ? quant::f32_to_f16(x) : quant::f32_to_bf16(x);
      if (t.type != Type::kF32) std::memcpy(&w[2 * i], &half, 2);
    }
    return w;
  }
  quant::Term term;
  for (size_t at = 0; at < w.size(); at += static_cast<size_t>(t.block_bytes)) {
    const auto finite = [&] {
      for (int i = 0; i < t.block_values / t.term_values; ++i) {
        term.dmin = 0;
        t.unpack(&w[at], i, term);
        if (!std::isfinite(term.d) || !std::isfinite(term.dmin)) return false;
      }
      return true;
    };
    while (!finite()) {
      for (int i = 0; i < t.block_bytes; ++i) {
        w[at + static_cast<size_t>(i)] = static_cast<std::byte>(rng());
      }
    }
  }
  return w;
}

std::vector<float> random_rows(int rows, int cols, std::mt19937& rng) {
  std::vector<float> x(static_cast<size_t>(rows) * static_cast<size_t>(cols));
  std::normal_distribution<float> normal;
  for (float& v : x) v = normal(rng);
  return x;
}

struct AlignedBytes {
  explicit AlignedBytes(Bytes n) : bytes(n + 64) {}
  std::byte* data() {
    const auto address = reinterpret_cast<uintptr_t>(bytes.data());
    return bytes.data() + (64 - address % 64) % 64;
  }
  std::vector<std::byte> bytes;
};

constexpr int kMostWeightRows = 33;
constexpr int kTiledRows = kMostWeightRows / quant::kTileRows * quant::kTileRows;
// Quantised activations and what they lie in.
struct Quantised {
  Quantised(const TypeTraits& t, const float* x, int n_rows, int cols)
      : scratch(quant_rows_bytes(n_rows, cols, t.activation_block)),
        crossed(static_cast<size_t>(n_rows) * static_cast<size_t>(cols)),
        rows(place_quant_rows(n_rows, cols, t.activation_block, scratch.data())) {
    if (takes_crossed(t.type)) rows.crossed = crossed.data();
    quantize_rows(x, cols, 0, n_rows, rows);
  }
  AlignedBytes scratch;
  std::vector<int8_t> crossed;
  QuantRows rows;
};

constexpr int kMostRows = 70;  // above the 64 that share an unpacked tile

// A type with weights, activations and the canonical product of all of them.
struct Problem {
  Problem(const TypeTraits& type, int columns, std::mt19937& rng)
      : t(type),
        cols(columns),
        w(random_weights(t, kMostWeightRows, cols, rng)),
        x(random_rows(kMostRows, cols, rng)),
        truth(static_cast<size_t>(kMostRows) * kMostWeightRows) {
    const size_t row_bytes = quant::row_bytes(t.type, static_cast<uint64_t>(cols));
    weight = {w.data(), t.type, row_bytes, cols};
    tile();
    std::vector<float> decoded(static_cast<size_t>(cols));
    for (int i = 0; i < kMostRows; ++i) {
      const float* xi = &x[static_cast<size_t>(i) * static_cast<size_t>(cols)];
      quant::QuantRow q;
      if (t.type_class == TypeClass::kQuantised) {
        q = quant::quantize_row(xi, cols, t.activation_block);
      }
      for (int o = 0; o < kMostWeightRows; ++o) {
        const std::byte* row = w.data() + static_cast<size_t>(o) * row_bytes;
        if (t.type_class == TypeClass::kFloat) {
          t.decode_floats(row, decoded.size(), decoded.data());
          at(i, o) = quant::dot_float(decoded.data(), xi, cols);
        } else {
          at(i, o) = quant::dot_canonical(t.type, row, cols, q);
        }
      }
    }
  }

  // Fills tiles from w.
  void tile() {
    if (!quant::tile_form(t.type)) return;
    const size_t row_bytes = weight.row_bytes;
    tiles.resize(kTiledRows * row_bytes);
    for (size_t r = 0; r < kTiledRows; r += quant::kTileRows) {
      quant::to_tile(t.type, cols, w.data() + r * row_bytes, &tiles[r * row_bytes]);
    }
    tiled = {tiles.data(), t.type, row_bytes, cols, Packing::kTiles};
  }

  float& at(int row, int o) { return truth[static_cast<size_t>(row) * kMostWeightRows + o]; }

  // Rows of results [n_rows, kMostWeightRows]; what is not written stays NaN.
  std::vector<float> multiply(const WeightRows& weights, int n_rows, int first, int end) {
    std::vector<float> y(static_cast<size_t>(n_rows) * kMostWeightRows,
                         std::numeric_limits<float>::quiet_NaN());
    const OutRows out{y.data(), kMostWeightRows, nullptr};
    if (t.type_class == TypeClass::kFloat) {
      matmul_float(weights, first, end, {x.data(), cols, n_rows}, {}, out);
      return y;
    }
    const Quantised q(t, x.data(), n_rows, cols);
    matmul(weights, first, end, q.rows, {}, out);
    return y;
  }

  const TypeTraits& t;
  int cols;
  std::vector<std::byte> w, tiles;
  std::vector<float> x;
  std::vector<float> truth;
  WeightRows weight, tiled;  // tiled.data is null where the type has no tiles
};

void expect_truth(Problem& p, const WeightRows& weights, int n_rows, int first, int end) {
  const std::vector<float> y = p.multiply(weights, n_rows, first, end);
  for (int i = 0; i < n_rows; ++i) {
    for (int o = 0; o < kMostWeightRows; ++o) {
      const float got = y[static_cast<size_t>(i) * kMostWeightRows + static_cast<size_t>(o)];
      if (o < first || o >= end) {
        ASSERT_TRUE(std::isnan(got)) << "row " << i << " weight row " << o << " was written";
        continue;
      }
      ASSERT_TRUE(same(got, p.at(i, o)))
          << p.t.name << (weights.packing == Packing::kTiles ? " tiles" : "") << " cols " << p.cols
          << " rows " << n_rows << " weight rows [" << first << "," << end << ") at " << i << ","
          << o << ": " << got << " not " << p.at(i, o);
    }
  }
}

class MatmulTest : public testing::TestWithParam<const TypeTraits*> {};

TEST_P(MatmulTest, EqualsTheCanonicalFormBitForBit) {
  const TypeTraits& t = *GetParam();
  std::mt19937 rng(static_cast<uint32_t>(t.type) + 1);
  const bool is_float = t.type_class == TypeClass::kFloat;
  const int block = is_float ? 32 : std::max(t.block_values, t.activation_block);
  std::vector<int> widths;
  for (int n_blocks : {1, 5, 8, 10, 20}) widths.push_back(n_blocks * block);
  if (is_float) widths.insert(widths.end(), {1, 7, 31, 33, 157});
  for (int cols : widths) {
    Problem p(t, cols, rng);
    for (const DotTable* table : tables_and_plain()) {
      SCOPED_TRACE(table_name(table));
      const WithTable with(table);
      for (int n_rows : {1, 2, 3, 7, 8, 9, 33}) {
        for (int end : {1, 5, 16, 33}) expect_truth(p, p.weight, n_rows, 0, end);
      }
      expect_truth(p, p.weight, kMostRows, 3, 21);  // a thread's share need not start at a panel
      if (p.tiled.data != nullptr) {
        for (int n_rows : {1, 2, 3, 4, 5, 6, 8, 9, 64, kMostRows}) {
          expect_truth(p, p.tiled, n_rows, 0, kTiledRows);
        }
        expect_truth(p, p.tiled, 4, quant::kTileRows, kTiledRows);
        expect_truth(p, p.tiled, 1, quant::kTileRows, kTiledRows - 3);
      }
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(MatmulTest, TakesRowsByIndex) {
  const TypeTraits& t = *GetParam();
  std::mt19937 rng(7);
  const int cols = 5 * std::max({t.block_values, t.activation_block, 32});
  Problem p(t, cols, rng);
  const std::vector<int32_t> all_from = {4, 0, 9, 4, 2, 5, 1, 3, 8, 7};
  const std::vector<int32_t> all_to = {1, 3, 0, 6, 5, 10, 9, 8, 7, 4};  // 2 is nobody's
  for (const DotTable* table : tables_and_plain()) {
    const WithTable with(table);
    for (const size_t n : {1, 2, 3, 4, 5, 8, 9, 10}) {
      const std::span<const int32_t> from(all_from.data(), n), to(all_to.data(), n);
      for (const WeightRows& weights : {p.weight, p.tiled}) {
        if (weights.data == nullptr) continue;
        const int end = weights.packing == Packing::kTiles ? kTiledRows : kMostWeightRows;
        std::vector<float> y(11 * kMostWeightRows, -1);
        const OutRows out{y.data(), kMostWeightRows, to.data()};
        if (t.type_class == TypeClass::kFloat) {
          matmul_float(weights, 0, end, {p.x.data(), cols, 10}, from, out);
        } else {
          const Quantised q(t, p.x.data(), 10, cols);
          matmul(weights, 0, end, q.rows, from, out);
        }
        for (size_t i = 0; i < n; ++i) {
          for (int o = 0; o < end; ++o) {
            const float got = y[static_cast<size_t>(to[i] * kMostWeightRows + o)];
            ASSERT_TRUE(same(got, p.at(from[i], o)))
                << table_name(table) << " rows " << n << " at " << i << "," << o;
          }
        }
        EXPECT_EQ(y[2 * kMostWeightRows], -1);
      }
    }
  }
}

// The largest codes, scales and activations: nothing saturates.
TEST_P(MatmulTest, ExtremeCodesDoNotSaturate) {
  const TypeTraits& t = *GetParam();
  if (t.type_class != TypeClass::kQuantised) GTEST_SKIP() << "no codes";
  std::mt19937 rng(11);
  const int cols = 2 * std::max(t.block_values, t.activation_block);
  for (const int fill : {0x00, 0x7F, 0x80, 0xFF, 0x88, 0x77}) {
    Problem p(t, cols, rng);
    const std::vector<std::byte> scales = p.w;
    for (size_t at = 0; at < p.w.size(); ++at) p.w[at] = static_cast<std::byte>(fill);
    // Keep the bytes that hold f16 scales random and finite: both ends of a block.
    for (size_t at = 0; at < p.w.size(); at += static_cast<size_t>(t.block_bytes)) {
      for (const size_t i : {size_t{0}, static_cast<size_t>(t.block_bytes) - 2}) {
        std::memcpy(&p.w[at + i], &scales[at + i], 2);
      }
    }
    for (size_t i = 0; i < p.x.size(); ++i) p.x[i] = (i / 8) % 3 == 0 && fill != 0 ? -1.0f : 1.0f;
    std::vector<float> expected;
    for (int o = 0; o < kMostWeightRows; ++o) {
      const quant::QuantRow q = quant::quantize_row(p.x.data(), cols, t.activation_block);
      expected.push_back(quant::dot_canonical(
          t.type, p.w.data() + static_cast<size_t>(o) * p.weight.row_bytes, cols, q));
    }
    p.tile();
    for (const DotTable* table : dot_tables()) {
      const WithTable with(table);
      for (const WeightRows& weights : {p.weight, p.tiled}) {
        if (weights.data == nullptr) continue;
        const int end = weights.packing == Packing::kTiles ? kTiledRows : kMostWeightRows;
        const std::vector<float> y = p.multiply(weights, 1, 0, end);
        for (size_t o = 0; o < static_cast<size_t>(end); ++o) {
          ASSERT_TRUE(same(y[o], expected[o])) << table_name(table) << " fill " << fill << " row "
                                               << o << ": " << y[o] << " not " << expected[o];
        }
      }
    }
  }
}

std::vector<const TypeTraits*> weight_types() {
  std::vector<const TypeTraits*> types;
  for (const TypeTraits& t : quant::all_types()) {
    if (t.type_class != TypeClass::kPlain) types.push_back(&t);
  }
  return types;
}
INSTANTIATE_TEST_SUITE_P(Types, MatmulTest, testing::ValuesIn(weight_types()),
                         [](const auto& p) { return std::string(p.param->name); });

TEST(DotTables, HaveEveryTypeThatMatters) {
  if (dot_tables().empty()) GTEST_SKIP() << "no AVX2 here";
  for (const DotTable* table : dot_tables()) {
    for (Type type :
         {Type::kF32,    Type::kF16,     Type::kBF16,   Type::kQ8_0,  Type::kQ4_0,    Type::kQ5_0,
          Type::kQ4_K,   Type::kQ5_K,    Type::kQ6_K,   Type::kQ3_K,  Type::kQ2_K,    Type::kIQ4_NL,
          Type::kIQ4_XS, Type::kIQ2_XXS, Type::kIQ2_XS, Type::kIQ2_S, Type::kIQ3_XXS, Type::kIQ3_S,
          Type::kQ2_0,   Type::kQ4_1,    Type::kQ5_1}) {
      EXPECT_NE(table->matmul[static_cast<uint32_t>(type)], nullptr)
          << table->name << " " << quant::name(type);
    }
  }
}

TEST(QuantizeRows, EqualsTheCanonicalFormBitForBit) {
  std::mt19937 rng(5);
  std::normal_distribution<float> normal;
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int block : {32, 256}) {
    const int cols = 3 * block;
    std::vector<std::vector<float>> rows;
    for (const float size : {1.0f, 1e-30f, 0x1p-99f, 0x1p-100f, 0x1p-101f, 1e-40f, 1e30f, 1e38f}) {
      std::vector<float>& row = rows.emplace_back(static_cast<size_t>(cols));
      for (float& v : row) v = size * std::max(-3.0f, std::min(3.0f, normal(rng)));
    }
    rows.emplace_back(static_cast<size_t>(cols), 0.0f);
    rows.emplace_back(static_cast<size_t>(cols), -0.0f);
    rows.emplace_back(static_cast<size_t>(cols), std::numeric_limits<float>::max());
    rows.emplace_back(static_cast<size_t>(cols), -0x1p-100f);
    for (const float odd : {inf, -inf, nan, -nan}) {
      std::vector<float> row = rows[0];
      row[static_cast<size_t>(block) + 5] = odd;
      rows.push_back(row);
    }
    // Ties: with a largest value of 127 the products are exact halves.
    std::vector<float>& ties = rows.emplace_back(static_cast<size_t>(cols));
    for (int i = 0; i < cols; ++i)
      ties[static_cast<size_t>(i)] = static_cast<float>(i % 254) / 2 - 63.0f;
    for (int b = 0; b < 3; ++b) ties[static_cast<size_t>(b * block)] = b == 1 ? -127.0f : 127.0f;

    const int n = static_cast<int>(rows.size());
    std::vector<float> x;
    for (const auto& row : rows) x.insert(x.end(), row.begin(), row.end());
    for (const DotTable* table : tables_and_plain()) {
      SCOPED_TRACE(table_name(table) + " block " + std::to_string(block));
      const WithTable with(table);
      AlignedBytes scratch(quant_rows_bytes(n, cols, block));
      QuantRows out = place_quant_rows(n, cols, block, scratch.data());
      std::vector<int8_t> crossed(static_cast<size_t>(n * cols), int8_t{99});
      if (table != nullptr) out.crossed = crossed.data();
      quantize_rows(x.data(), cols, 0, 4, out);
      quantize_rows(x.data(), cols, 4, n, out);
      for (int r = 0; r < n; ++r) {
        const quant::QuantRow expected =
            quant::quantize_row(rows[static_cast<size_t>(r)].data(), cols, block);
        for (int i = 0; i < cols; ++i) {
          ASSERT_EQ(out.q[r * cols + i], expected.q[static_cast<size_t>(i)]) << r << "," << i;
          const int place = i / 16 * 16 + i % 4 * 4 + i % 16 / 4;
          if (table != nullptr) {
            ASSERT_EQ(out.crossed[r * cols + place], out.q[r * cols + i]) << r << "," << i;
          }
        }
        for (int b = 0; b < 3; ++b) {
          ASSERT_EQ(std::bit_cast<uint32_t>(out.scale[r * 3 + b]),
                    std::bit_cast<uint32_t>(expected.scale[static_cast<size_t>(b)]))
              << r << " block " << b;
        }
        for (int g = 0; g < cols / 16; ++g) {
          int sum = 0;
          for (int i = 0; i < 16; ++i) sum += expected.q[static_cast<size_t>(16 * g + i)];
          ASSERT_EQ(out.sums[r * (cols / 16) + g], sum) << r << " group " << g;
        }
      }
    }
  }
}

TEST(QuantizeRows, OneBadValueSpoilsTheProductOfItsRowOnly) {
  std::mt19937 rng(3);
  const TypeTraits& t = quant::traits(Type::kQ4_K);
  Problem p(t, 512, rng);
  p.x[512 + 300] = std::numeric_limits<float>::infinity();
  for (const DotTable* table : tables_and_plain()) {
    const WithTable with(table);
    const std::vector<float> y = p.multiply(p.weight, 3, 0, 4);
    EXPECT_TRUE(std::isnan(y[kMostWeightRows]));
    EXPECT_TRUE(same(y[0], p.at(0, 0)));
    EXPECT_TRUE(same(y[2 * kMostWeightRows], p.at(2, 0)));
  }
}

}  // namespace
}  // namespace strata::kernels::cpu
