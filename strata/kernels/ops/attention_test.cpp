#include "strata/kernels/ops/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "strata/base/format.h"
#include "strata/kernels/test_machines.h"
#include "strata/quant/half.h"

namespace strata::kernels {
namespace {

using testing::Machine;
using testing::Outputs;
using testing::RowsShape;
using testing::Seq;

struct Shape {
  int heads, kv_heads, dk, dv, index_heads, index_dim, ratio, pairs;
};
constexpr CacheType kTypes[] = {CacheType::kF32, CacheType::kF16, CacheType::kI8};
// Head sizes off the lanes' 32, groups of 1, 2, 3 and 12, blocks of 1, 2, 4 and 8.
const std::vector<Shape> kShapes = {{4, 2, 32, 32, 6, 16, 4, 4},
                                    {3, 1, 33, 31, 1, 33, 2, 8},
                                    {2, 2, 7, 5, 2, 8, 8, 2},
                                    {12, 1, 64, 40, 4, 24, 1, 3}};

// Cells of one layer as raw bytes of the type.
struct Cells {
  Cells(testing::Rng& rng, const Shape& s, CacheType cache, int pages, int page_tokens)
      : shape(s), type(cache), tokens(page_tokens) {
    fill(rng, k, pages, s.dk);
    fill(rng, v, pages, s.dv);
    pooled = bytes_of_all(pool().pooled_type(), testing::normal(rng, int64_t{pages} * page_tokens /
                                                                         s.ratio * s.index_dim));
  }
  KvPool pool() {
    return {.k = k.data(),
            .v = v.data(),
            .pooled = pooled.data(),
            .type = type,
            .page_tokens = tokens,
            .kv_heads = shape.kv_heads,
            .dk = shape.dk,
            .dv = shape.dv,
            .index_dim = shape.index_dim,
            .ratio = shape.ratio};
  }
  void fill(testing::Rng& rng, std::vector<std::byte>& to, int pages, int dim) {
    const int64_t n = pool().cells_per_page();
    for (int page = 0; page < pages; ++page) {
      const auto cells = bytes_of_all(type, testing::normal(rng, n * dim));
      to.insert(to.end(), cells.begin(), cells.end());
      if (type != CacheType::kI8) continue;
      const auto scales = bytes_of_all(CacheType::kF32, testing::normal(rng, n, 0.02f));
      to.insert(to.end(), scales.begin(), scales.end());
    }
  }
  static std::vector<std::byte> bytes_of_all(CacheType type, const std::vector<float>& values) {
    std::vector<std::byte> to(values.size() * static_cast<size_t>(bytes_of(type)));
    for (size_t i = 0; i < values.size(); ++i) {
      const uint16_t half = quant::f32_to_f16(values[i]);
      if (type == CacheType::kF32) std::memcpy(&to[4 * i], &values[i], 4);
      if (type == CacheType::kF16) std::memcpy(&to[2 * i], &half, 2);
      if (type == CacheType::kI8) {
        to[i] =
            static_cast<std::byte>(static_cast<int8_t>(std::clamp(40 * values[i], -127.f, 127.f)));
      }
    }
    return to;
  }
  void add_to(Outputs& out) {
    const KvPool p = pool();
    const auto add_part = [&](const char* what, CacheType as, const std::byte* from, int64_t n) {
      const auto size = static_cast<size_t>(n);
      std::vector<float> floats(size);
      std::vector<uint16_t> halves(size);
      if (as == CacheType::kF32) std::memcpy(floats.data(), from, 4 * size);
      if (as == CacheType::kF16) std::memcpy(halves.data(), from, 2 * size);
      if (as == CacheType::kI8) std::transform(from, from + n, halves.begin(), code_as_half);
      as == CacheType::kF32 ? out.add(what, floats) : out.add_halves(what, halves);
    };
    const auto add = [&](const char* what, const std::vector<std::byte>& bytes, int dim) {
      const int64_t page = p.page_bytes(dim), n = p.cells_per_page();
      for (int64_t at = 0; at < static_cast<int64_t>(bytes.size()); at += page) {
        add_part(what, type, &bytes[static_cast<size_t>(at)], n * dim);
        if (type != CacheType::kI8) continue;
        add_part("scales", CacheType::kF32, &bytes[static_cast<size_t>(at + n * dim)], n);
      }
    };
    add("k", k, shape.dk);
    add("v", v, shape.dv);
    add_part("pooled", p.pooled_type(), pooled.data(),
             static_cast<int64_t>(pooled.size()) / bytes_of(p.pooled_type()));
  }
  // A half with these bits is a finite number, and another one for each code.
  static uint16_t code_as_half(std::byte code) { return static_cast<uint16_t>(code); }
  Shape shape;
  CacheType type;
  int tokens;
  std::vector<std::byte> k, v, pooled;
};

TEST(QkNormRopeOp, Parity) {
  testing::Rng rng(1);
  for (int heads : {1, 3}) {
    for (int dim : {2, 8, 31, 33, 64, 256}) {
      for (int n : {1, 3, 7}) {
        const int pairs = std::min(dim / 2, 5), stride = dim + 3;
        const testing::TestRows rows(rng, {{0, 5, n}}, {.pairs = pairs});
        const int max_rows = rows.max_rows();
        std::vector<float> x = testing::normal(rng, int64_t{max_rows} * heads * stride);
        const std::vector<float> w = testing::normal(rng, dim);
        if (n == 7) testing::salt(rng, x, 50, true);
        testing::expect_same(format("{} x {}, {} rows", heads, dim, n), [&](Machine& m) {
          std::vector<float> y(static_cast<size_t>(max_rows * heads * dim), -7.5f);
          m.run(m.ops().qk_norm_rope,
                QkNormRope{.rows = rows.rows(),
                           .x = View<const float>(x.data(), {max_rows, heads * stride}),
                           .w = w.data(),
                           .heads = heads,
                           .dim = dim,
                           .head_stride = stride,
                           .pairs = pairs,
                           .eps = 1e-6f,
                           .out = View<float>(y.data(), {max_rows, heads * dim})});
          EXPECT_EQ(y.back(), -7.5f);
          Outputs out;
          out.add("y", y);
          return out;
        });
      }
    }
  }
}

TEST(KvAppendOp, ParityOnSeveralPages) {
  testing::Rng rng(2);
  for (CacheType type : kTypes) {
    for (const Shape& s : kShapes) {
      const testing::TestRows rows(rng, {{2, 13, 11}, {0, 0, 1}, {1, 7, 2}}, {.slots = 3});
      const int n = rows.max_rows();
      std::vector<float> k = testing::normal(rng, int64_t{n} * s.kv_heads * s.dk);
      std::vector<float> v = testing::normal(rng, int64_t{n} * s.kv_heads * s.dv, 1e3f);
      testing::salt(rng, v, 20, true);
      const Cells cells(rng, s, type, rows.n_pages(), 8);
      testing::expect_same(format("{} x {}", s.kv_heads, s.dk), [&](Machine& m) {
        Cells own = cells;
        m.run(m.ops().kv_append, KvAppend{.rows = rows.rows(),
                                          .k = View<const float>(k.data(), {n, s.kv_heads * s.dk}),
                                          .v = View<const float>(v.data(), {n, s.kv_heads * s.dv}),
                                          .pool = own.pool()});
        Outputs out;
        own.add_to(out);
        return out;
      });
    }
  }
}

TEST(PoolKeysOp, Parity) {
  testing::Rng rng(3);
  for (CacheType type : kTypes) {
    for (const Shape& s : kShapes) {
      for (int first : {0, 1, 6, 13}) {
        const testing::TestRows rows(rng, {{1, first, 11}, {0, 3, 1}, {2, first + 1, 3}},
                                     {.slots = 3, .pairs = s.pairs});
        const int n = rows.max_rows(), depth = s.ratio - 1, window = 4;
        std::vector<float> raw = testing::normal(rng, int64_t{n} * s.index_dim);
        if (first == 13) testing::salt(rng, raw, 60, true);
        const std::vector<float> w = testing::normal(rng, s.index_dim);
        const std::vector<float> state = testing::normal(rng, int64_t{3} * 2 * depth * s.index_dim),
                                 log = testing::normal(rng, int64_t{3} * window * s.index_dim);
        const Cells cells(rng, s, type, rows.n_pages(), 8);
        testing::expect_same(format("blocks of {}, from {}", s.ratio, first), [&](Machine& m) {
          Cells own = cells;
          std::vector<float> own_state = state, own_log = log;
          Tail tail;
          if (depth > 0) {
            tail = {.state = View<float>(own_state.data(), {3, 2, depth, s.index_dim}),
                    .log = View<float>(own_log.data(), {3, window, s.index_dim})};
          }
          m.run(m.ops().pool_keys, PoolKeys{.rows = rows.rows(),
                                            .raw = View<const float>(raw.data(), {n, s.index_dim}),
                                            .w = w.data(),
                                            .pairs = s.pairs,
                                            .eps = 1e-6f,
                                            .tail = tail,
                                            .pool = own.pool()});
          Outputs out;
          own.add_to(out);
          out.add("state", own_state);
          out.add("log", own_log);
          return out;
        });
      }
    }
  }
}

// Selection and attention of one step.
struct Step {
  Shape shape;
  CacheType type;
  int budget = 2;  // blocks
  std::vector<Seq> sequences;
  int max_context = 64;
  bool broken = false;
};

struct Selected {
  std::vector<int32_t> blocks, n_blocks;
};

Selected select(Machine& m, const Step& c, const testing::TestRows& rows, Cells& cells,
                const std::vector<float>& index_q) {
  const int n = rows.max_rows();
  Selected s{std::vector<int32_t>(static_cast<size_t>(n * c.budget), -7),
             std::vector<int32_t>(static_cast<size_t>(n), -7)};
  const Shape& h = c.shape;
  m.run(m.ops().qsa_select,
        QsaSelect{.rows = rows.rows(),
                  .q = View<const float>(index_q.data(), {n, h.index_heads * h.index_dim}),
                  .heads = h.index_heads,
                  .budget = c.budget,
                  .max_context = c.max_context,
                  .pool = cells.pool(),
                  .blocks = View<int32_t>(s.blocks.data(), {n, c.budget}),
                  .n_blocks = View<int32_t>(s.n_blocks.data(), {n})});
  return s;
}

void expect_attention_parity(const Step& c, uint32_t seed) {
  testing::Rng rng(seed);
  const Shape& s = c.shape;
  const testing::TestRows rows(rng, c.sequences, {.slots = 3, .max_context = c.max_context});
  const int n = rows.max_rows();
  std::vector<float> index_q = testing::normal(rng, int64_t{n} * s.index_heads * s.index_dim),
                     q = testing::normal(rng, int64_t{n} * s.heads * s.dk),
                     gate = testing::normal(rng, int64_t{n} * s.heads * (s.dk + s.dv));
  if (c.broken) {
    testing::salt(rng, index_q, 100, true);
    testing::salt(rng, q, 100, true);
  }
  Cells cells(rng, s, c.type, rows.n_pages(), 8);
  const int width = s.heads * s.dv;
  testing::expect_same(
      format("{} heads of {}, budget {}, {}, seed {}", s.heads, s.dk, c.budget, name_of(c.type),
             seed),
      [&](Machine& m) {
        Selected selected;
        if (c.budget > 0) selected = select(m, c, rows, cells, index_q);
        std::vector<float> y(static_cast<size_t>(n * width), -7.5f);
        m.run(m.ops().qsa_attend,
              QsaAttend{.rows = rows.rows(),
                        .q = View<const float>(q.data(), {n, s.heads * s.dk}),
                        .gate = View<const float>(gate.data(), {n, s.heads * (s.dk + s.dv)}),
                        .heads = s.heads,
                        .gate_stride = s.dk + s.dv,
                        .gate_offset = s.dk,
                        .budget = c.budget,
                        .max_context = c.max_context,
                        .pool = cells.pool(),
                        .blocks = View<const int32_t>(selected.blocks.data(), {n, c.budget}),
                        .n_blocks = View<const int32_t>(selected.n_blocks.data(), {n}),
                        .out = View<float>(y.data(), {n, width})});
        EXPECT_EQ(y.back(), -7.5f);
        Outputs out;
        out.add("blocks", selected.blocks);
        out.add("n_blocks", selected.n_blocks);
        out.add("y", y);
        return out;
      });
}

TEST(QsaOps, Parity) {
  uint32_t seed = 10;
  for (CacheType type : kTypes) {
    for (const Shape& shape : kShapes) {
      for (int budget : {0, 1, 2, 7}) {
        expect_attention_parity({shape, type, budget, {{1, 0, 1}}}, ++seed);
        expect_attention_parity({shape, type, budget, {{1, 0, 33}}}, ++seed);
        expect_attention_parity({shape, type, budget, {{0, 61, 3}, {2, 17, 2}, {1, 40, 7}}},
                                ++seed);
        expect_attention_parity({shape, type, budget, {}}, ++seed);
      }
    }
  }
}

TEST(QsaOps, ParityOfBrokenInputs) {
  for (uint32_t seed = 100; seed < 106; ++seed) {
    for (const Shape& shape : kShapes) {
      expect_attention_parity({.shape = shape,
                               .type = kTypes[seed % 3],
                               .budget = 3,
                               .sequences = {{0, 50, 3}, {2, 17, 2}},
                               .broken = true},
                              seed);
    }
  }
}

// A plain statement of the rule: sort by falling score, of equals the lower block, NaN last.
std::vector<int32_t> best_blocks(std::vector<float> score, int budget) {
  std::vector<int32_t> order;
  for (size_t b = 0; b < score.size(); ++b) {
    order.push_back(static_cast<int32_t>(b));
    if (std::isnan(score[b])) score[b] = -std::numeric_limits<float>::infinity();
  }
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return score[static_cast<size_t>(a)] > score[static_cast<size_t>(b)];
  });
  order.resize(static_cast<size_t>(budget));
  std::sort(order.begin(), order.end());
  return order;
}

// One index head of one dim and key = the wanted score: scores are what the test says.
std::vector<int32_t> select_by_scores(Machine& m, const std::vector<float>& score, int budget) {
  testing::Rng rng(1);
  const int n_blocks = static_cast<int>(score.size());
  const Step c{.shape = {1, 1, 4, 4, 1, 1, 4, 1},
               .type = CacheType::kF32,
               .budget = budget,
               .sequences = {{0, 4 * n_blocks, 1}},
               .max_context = 4 * n_blocks + 4};
  testing::TestRows rows(rng, c.sequences, {.max_context = c.max_context});
  Cells cells(rng, c.shape, c.type, rows.n_pages(), 8);
  const KvPool pool = cells.pool();
  for (int b = 0; b < n_blocks; ++b) {
    std::memcpy(cells.pooled.data() + pool.pooled_cell(rows.rows(), 0, b),
                &score[static_cast<size_t>(b)], 4);
  }
  const Selected s = select(m, c, rows, cells, {1, 0, 0});
  EXPECT_EQ(s.n_blocks[0], n_blocks > budget ? budget : -1);
  return {s.blocks.begin(), s.blocks.begin() + budget};
}

TEST(QsaSelectOp, TiesTakeTheLowerBlock) {
  for (const auto& m : testing::machines()) {
    EXPECT_EQ(select_by_scores(*m, std::vector<float>(40, 0.0f), 4),
              (std::vector<int32_t>{0, 1, 2, 3}));
    EXPECT_EQ(select_by_scores(*m, std::vector<float>(40, 2.0f), 4),
              (std::vector<int32_t>{0, 1, 2, 3}));
    // Negative scores are 0 after the relu.
    EXPECT_EQ(select_by_scores(*m, {-1, -3, -2, 5, 0, -1}, 3), (std::vector<int32_t>{0, 1, 3}));
    EXPECT_EQ(select_by_scores(*m, {1, 2, 1, 2, 1, 2}, 4), (std::vector<int32_t>{0, 1, 3, 5}));
  }
}

TEST(QsaSelectOp, ABrokenScoreLosesAndIdsStayInRange) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (const auto& m : testing::machines()) {
    EXPECT_EQ(select_by_scores(*m, {nan, 0, nan, 1, 0}, 3), (std::vector<int32_t>{1, 3, 4}));
    EXPECT_EQ(select_by_scores(*m, {nan, nan, nan, nan}, 2), (std::vector<int32_t>{0, 1}));
    EXPECT_EQ(select_by_scores(*m, {0, inf, 1, inf, 2}, 3), (std::vector<int32_t>{1, 3, 4}));
  }
}

// Budget - 1, budget, budget + 1 and ten times as many blocks; a needle at start, middle and end.
TEST(QsaSelectOp, EqualsThePlainRule) {
  testing::Rng rng(5);
  for (int n_blocks : {1, 3, 4, 5, 8, 40, 41}) {
    for (int round = 0; round < 6; ++round) {
      std::vector<float> score;
      for (int b = 0; b < n_blocks; ++b) {
        score.push_back(static_cast<float>(rng() % 4));  // many ties
      }
      const size_t needle[] = {0, score.size() / 2, score.size() - 1};
      if (round < 3) score[needle[round]] = 9;
      for (const auto& m : testing::machines()) {
        const std::vector<int32_t> got = select_by_scores(*m, score, 4);
        if (n_blocks <= 4) continue;
        EXPECT_EQ(got, best_blocks(score, 4)) << m->name() << " " << n_blocks;
      }
    }
  }
}

// Attention over everything and over a selection that holds everything are the same bits.
TEST(QsaAttendOp, ASelectionOfEverythingIsDense) {
  testing::Rng rng(6);
  const Shape& s = kShapes[0];
  const testing::TestRows rows(rng, {{0, 15, 1}}, {});
  const std::vector<float> q = testing::normal(rng, 3 * s.heads * s.dk),
                           gate = testing::normal(rng, 3 * s.heads * (s.dk + s.dv));
  Cells cells(rng, s, CacheType::kF16, rows.n_pages(), 8);
  // Of the one row that counts.
  const std::vector<int32_t> blocks = {0, 1, 2, 3, -1, -1, -1, -1, -1, -1, -1, -1};
  for (const auto& m : testing::machines()) {
    std::vector<std::vector<float>> results;
    for (int32_t n : {-1, 4}) {
      const std::vector<int32_t> n_blocks = {n, -1, -1};
      std::vector<float> y(static_cast<size_t>(3 * s.heads * s.dv));
      m->run(m->ops().qsa_attend,
             QsaAttend{.rows = rows.rows(),
                       .q = View<const float>(q.data(), {3, s.heads * s.dk}),
                       .gate = View<const float>(gate.data(), {3, s.heads * (s.dk + s.dv)}),
                       .heads = s.heads,
                       .gate_stride = s.dk + s.dv,
                       .gate_offset = s.dk,
                       .budget = 4,
                       .max_context = 64,
                       .pool = cells.pool(),
                       .blocks = View<const int32_t>(blocks.data(), {3, 4}),
                       .n_blocks = View<const int32_t>(n_blocks.data(), {3}),
                       .out = View<float>(y.data(), {3, s.heads * s.dv})});
      results.push_back(y);
    }
    EXPECT_EQ(results[0], results[1]) << m->name();
  }
}

// The plain backend against the formula in double, with the cells that were appended: of 4 bytes
// exactly, of 2 and 1 as near as they can hold.
void expect_softmax_attention(CacheType type, double bound) {
  testing::Rng rng(7);
  const Shape s{4, 2, 36, 20, 1, 1, 4, 1};
  constexpr int kTokens = 22;
  const testing::TestRows all(rng, {{0, 0, kTokens}}, {}), last(rng, {{0, kTokens - 1, 1}}, {});
  const int n = all.max_rows(), n_last = last.max_rows();
  const std::vector<float> k = testing::normal(rng, int64_t{n} * s.kv_heads * s.dk),
                           v = testing::normal(rng, int64_t{n} * s.kv_heads * s.dv),
                           q = testing::normal(rng, int64_t{n_last} * s.heads * s.dk),
                           gate = testing::normal(rng, int64_t{n_last} * s.heads * s.dv);
  Cells cells(rng, s, type, std::max(all.n_pages(), last.n_pages()), 8);
  Machine& m = *testing::machines()[0];
  std::vector<float> y(static_cast<size_t>(n_last * s.heads * s.dv));
  m.run(m.ops().kv_append, KvAppend{.rows = all.rows(),
                                    .k = View<const float>(k.data(), {n, s.kv_heads * s.dk}),
                                    .v = View<const float>(v.data(), {n, s.kv_heads * s.dv}),
                                    .pool = cells.pool()});
  Rows rows = last.rows();
  rows.pages = all.rows().pages, rows.pages_per_slot = all.rows().pages_per_slot;
  m.run(m.ops().qsa_attend,
        QsaAttend{.rows = rows,
                  .q = View<const float>(q.data(), {n_last, s.heads * s.dk}),
                  .gate = View<const float>(gate.data(), {n_last, s.heads * s.dv}),
                  .heads = s.heads,
                  .gate_stride = s.dv,
                  .max_context = 64,
                  .pool = cells.pool(),
                  .out = View<float>(y.data(), {n_last, s.heads * s.dv})});
  for (int h = 0; h < s.heads; ++h) {
    const int kv = h / (s.heads / s.kv_heads);
    std::vector<double> p;
    double sum = 0;
    for (int t = 0; t < kTokens; ++t) {
      double dot = 0;
      for (int i = 0; i < s.dk; ++i) {
        dot += static_cast<double>(q[h * s.dk + i]) * k[(t * s.kv_heads + kv) * s.dk + i];
      }
      p.push_back(std::exp(dot / std::sqrt(s.dk)));
      sum += p.back();
    }
    for (int i = 0; i < s.dv; ++i) {
      double o = 0;
      for (int t = 0; t < kTokens; ++t) {
        o += p[t] / sum * v[(t * s.kv_heads + kv) * s.dv + i];
      }
      EXPECT_NEAR(y[h * s.dv + i], o / (1 + std::exp(-gate[h * s.dv + i])), bound)
          << h << " " << name_of(type);
    }
  }
}

TEST(QsaAttendOp, IsSoftmaxAttention) {
  expect_softmax_attention(CacheType::kF32, 1e-6);
  expect_softmax_attention(CacheType::kF16, 1e-3);
  expect_softmax_attention(CacheType::kI8, 1e-2);
}

}  // namespace
}  // namespace strata::kernels
