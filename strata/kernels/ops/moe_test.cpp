#include "strata/kernels/ops/moe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "strata/base/format.h"
#include "strata/kernels/test_machines.h"

namespace strata::kernels {
namespace {

using quant::Type;
using testing::Machine;
using testing::Outputs;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Routed {
  std::vector<int32_t> id;
  std::vector<float> weight;
};

Routed route(Machine& m, std::vector<float> logits, int n_rows, int max_rows, int top_k) {
  const int64_t experts = static_cast<int64_t>(logits.size()) / max_rows;
  Routed r{std::vector<int32_t>(static_cast<size_t>(max_rows * top_k), -7),
           std::vector<float>(static_cast<size_t>(max_rows * top_k), -7.5f)};
  const int32_t count = n_rows;
  m.run(m.ops().router_topk, RouterTopk{.n_rows = &count,
                                        .logits = View<float>(logits.data(), {max_rows, experts}),
                                        .top_k = top_k,
                                        .id = View<int32_t>(r.id.data(), {max_rows, top_k}),
                                        .weight = View<float>(r.weight.data(), {max_rows, top_k})});
  return r;
}

TEST(RouterTopkOp, Parity) {
  testing::Rng rng(1);
  for (int experts : {1, 2, 8, 31, 33, 64, 257, 512}) {
    for (int top_k : {1, 2, 4, 10, 64}) {
      if (top_k > experts) continue;
      for (int n_rows : {0, 1, 3, 7}) {
        std::vector<float> logits = testing::normal(rng, int64_t{n_rows + 1} * experts, 3);
        if (n_rows == 3) testing::salt(rng, logits, 30, true);
        if (n_rows == 7) {
          for (float& v : logits) v = std::round(v);  // ties
        }
        testing::expect_same(format("{} of {}, {} rows", top_k, experts, n_rows), [&](Machine& m) {
          const Routed r = route(m, logits, n_rows, n_rows + 1, top_k);
          EXPECT_EQ(r.id.back(), -7);
          Outputs out;
          out.add("id", r.id);
          out.add("weight", r.weight);
          return out;
        });
      }
    }
  }
}

TEST(RouterTopkOp, IsTheSoftmaxOfTheBest) {
  testing::Rng rng(2);
  constexpr int kExperts = 40, kTopK = 5;
  const std::vector<float> logits = testing::normal(rng, kExperts, 2);
  const Routed r = route(*testing::machines()[0], logits, 1, 1, kTopK);
  std::vector<int32_t> order(kExperts);
  for (int e = 0; e < kExperts; ++e) order[static_cast<size_t>(e)] = e;
  std::sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
  double sum = 0;
  for (int j = 0; j < kTopK; ++j) sum += std::exp(static_cast<double>(logits[order[j]]));
  for (int j = 0; j < kTopK; ++j) {
    EXPECT_EQ(r.id[j], order[j]);
    EXPECT_NEAR(r.weight[j], std::exp(static_cast<double>(logits[order[j]])) / sum, 1e-6);
  }
}

TEST(RouterTopkOp, OfEqualsTheLowerIdFirst) {
  for (const auto& m : testing::machines()) {
    const Routed r = route(*m, {0, 2, 1, 2, 1, 2, 0, 1}, 1, 1, 5);
    EXPECT_EQ(r.id, (std::vector<int32_t>{1, 3, 5, 2, 4})) << m->name();
    EXPECT_EQ(r.weight[0], r.weight[2]);
    EXPECT_EQ(route(*m, std::vector<float>(9, -3.0f), 1, 1, 3).id, (std::vector<int32_t>{0, 1, 2}));
  }
}

// Whatever the weights hold, the ids are distinct experts: nothing reads outside a table.
// Few values, many times each, in blocks and scattered; some are minus infinity.
TEST(RouterTopkOp, F130_TiesGoToTheLowerIdAtEverySize) {
  testing::Rng rng(4);
  const std::array<float, 6> levels = {1, 0, -1, -2.5F, -4, -kInf};
  for (const int n : {1, 2, 7, 16, 17, 63, 64, 65, 255, 1000, 4097, 30000, 100000}) {
    for (const bool blocks : {false, true}) {
      std::vector<float> draws = testing::normal(rng, n, 2), logits(static_cast<size_t>(n));
      for (size_t i = 0; i < logits.size(); ++i) {
        const float draw = draws[blocks ? i / 16 * 16 : i];
        logits[i] = levels[std::min(levels.size() - 1, static_cast<size_t>(std::abs(draw)))];
      }
      logits[static_cast<size_t>(n) / 2] = 0;  // not all are minus infinity
      std::vector<int32_t> wanted(static_cast<size_t>(n));
      std::iota(wanted.begin(), wanted.end(), 0);
      std::ranges::stable_sort(wanted, std::greater<>(),
                               [&](int32_t id) { return logits[static_cast<size_t>(id)]; });
      for (const int top_k : {1, 2, 10, 64}) {
        if (top_k > n) continue;
        const std::vector<int32_t> first(wanted.begin(), wanted.begin() + top_k);
        for (const auto& machine : testing::machines()) {
          EXPECT_EQ(route(*machine, logits, 1, 1, top_k).id, first)
              << top_k << " of " << n << (blocks ? " in blocks" : "");
        }
      }
    }
  }
}

TEST(RouterTopkOp, BrokenLogitsGiveIdsInRange) {
  const std::vector<std::vector<float>> cases = {
      std::vector<float>(8, kNan),
      std::vector<float>(8, kInf),
      std::vector<float>(8, -kInf),
      {0, kNan, 1, 2, 3, 4, 5, 6},
      {kNan, 0, 1, 2, 3, 4, 5, 6},
      {0, kInf, 1, 2, kInf, 4, 5, 6},
      {-kInf, -kInf, -kInf, 1, -kInf, -kInf, -kInf, -kInf}};
  for (const auto& m : testing::machines()) {
    for (const std::vector<float>& logits : cases) {
      for (int top_k : {1, 4, 8}) {
        const Routed r = route(*m, logits, 1, 1, top_k);
        EXPECT_EQ(std::set<int32_t>(r.id.begin(), r.id.end()).size(), r.id.size());
        for (int32_t id : r.id) EXPECT_TRUE(id >= 0 && id < 8) << id;
      }
    }
  }
}

// Experts with their matrices, and the address table of the op.
struct Experts {
  Experts(testing::Rng& rng, int n, int width, int ff, Type gate_type, Type down_type) {
    for (int e = 0; e < n; ++e) {
      matrices.emplace_back(rng, gate_type, ff, width, 0.2f);
      matrices.emplace_back(rng, gate_type, ff, width, 0.2f);
      matrices.emplace_back(rng, down_type, width, ff, 0.2f);
    }
    for (const testing::TestWeight& w : matrices) parts.push_back(w.w.data);
    shape = {.gate = matrices[0].w, .up = matrices[1].w, .down = matrices[2].w};
    shape.gate.data = shape.up.data = shape.down.data = nullptr;
  }
  std::vector<testing::TestWeight> matrices;
  std::vector<const std::byte*> parts;
  ExpertShape shape;
};

struct FfnCase {
  int experts, top_k, width, ff, n_rows;
  Type gate = Type::kF32, down = Type::kF32;
  bool scaled = false;
  bool one_expert_for_all = false;
};

void expect_ffn_parity(const FfnCase& c, uint32_t seed) {
  testing::Rng rng(seed);
  Experts experts(rng, c.experts, c.width, c.ff, c.gate, c.down);
  const std::vector<float> scale = testing::normal(rng, int64_t{3} * c.experts);
  if (c.scaled) {
    experts.shape.gate_scale = scale.data();
    experts.shape.up_scale = scale.data() + c.experts;
    experts.shape.down_scale = scale.data() + 2 * c.experts;
  }
  const int max_rows = c.n_rows + 1;
  const std::vector<float> x = testing::normal(rng, int64_t{max_rows} * c.width);
  std::vector<int32_t> id;
  std::vector<int32_t> all(static_cast<size_t>(c.experts));
  for (int e = 0; e < c.experts; ++e) all[static_cast<size_t>(e)] = e;
  for (int row = 0; row < max_rows; ++row) {
    if (!c.one_expert_for_all) std::shuffle(all.begin(), all.end(), rng);
    id.insert(id.end(), all.begin(), all.begin() + c.top_k);
  }
  const int32_t count = c.n_rows;
  // Every other case has a shared expert, of a width of its own.
  const bool with_shared = seed % 2 == 0;
  const int shared_ff = c.ff % 32 == 0 ? 2 * c.ff : c.ff + 3;
  const testing::TestWeight shared_gate(rng, c.gate, shared_ff, c.width, 0.2f),
      shared_up(rng, c.gate, shared_ff, c.width, 0.2f),
      shared_down(rng, c.down, c.width, shared_ff, 0.2f);
  ExpertFfn::Shared shared;
  if (with_shared) shared = {.gate = shared_gate.w, .up = shared_up.w, .down = shared_down.w};
  testing::expect_same(
      format("{} of {} experts, {} x {}, {} rows of {} and {}", c.top_k, c.experts, c.width, c.ff,
             c.n_rows, quant::name(c.gate), quant::name(c.down)),
      [&](Machine& m) {
        std::vector<float> y(static_cast<size_t>(max_rows * c.top_k * c.width), -7.5f);
        std::vector<float> shared_y(static_cast<size_t>(max_rows * c.width), -7.5f);
        if (with_shared) shared.y = View<float>(shared_y.data(), {max_rows, c.width});
        m.run(m.ops().expert_ffn,
              ExpertFfn{.n_rows = &count,
                        .x = View<const float>(x.data(), {max_rows, c.width}),
                        .id = View<const int32_t>(id.data(), {max_rows, c.top_k}),
                        .parts = View<const std::byte* const>(experts.parts.data(), {c.experts, 3}),
                        .shape = experts.shape,
                        .shared = shared,
                        .out = View<float>(y.data(), {max_rows, c.top_k, c.width})});
        EXPECT_EQ(y.back(), -7.5f);
        EXPECT_EQ(shared_y.back(), -7.5f);
        Outputs out;
        out.add("y", y);
        out.add("shared", shared_y);
        return out;
      });
}

TEST(ExpertFfnOp, Parity) {
  uint32_t seed = 1;
  for (int n_rows : {0, 1, 2, 7, 33}) {
    expect_ffn_parity({.experts = 16, .top_k = 4, .width = 64, .ff = 32, .n_rows = n_rows}, ++seed);
  }
  for (int width : {1, 33, 65}) {
    for (int ff : {1, 31, 64, 130}) {
      expect_ffn_parity({.experts = 5, .top_k = 2, .width = width, .ff = ff, .n_rows = 3}, ++seed);
    }
  }
  // All rows meet in one expert: more than one group of 64 and of 256 rows.
  expect_ffn_parity({.experts = 3,
                     .top_k = 1,
                     .width = 32,
                     .ff = 32,
                     .n_rows = 300,
                     .gate = Type::kQ8_0,
                     .down = Type::kQ8_0,
                     .one_expert_for_all = true},
                    ++seed);
}

TEST(ExpertFfnOp, ParityOfTypes) {
  uint32_t seed = 50;
  for (const auto& [gate, down] : {std::pair{Type::kQ4_K, Type::kQ6_K},
                                   {Type::kIQ4_NL, Type::kQ8_0},
                                   {Type::kBF16, Type::kQ4_0},
                                   {Type::kQ4_K, Type::kF16}}) {
    for (int n_rows : {1, 7}) {
      for (bool scaled : {false, true}) {
        expect_ffn_parity({.experts = 6,
                           .top_k = 3,
                           .width = 256,
                           .ff = 256,
                           .n_rows = n_rows,
                           .gate = gate,
                           .down = down,
                           .scaled = scaled},
                          ++seed);
      }
    }
  }
}

// What lies in several places is computed in several calls: the bits of one. Rows of experts that
// are not here stay as they are.
TEST(ExpertFfnOp, SkipsWhatIsNotHere) {
  constexpr int kRows = 9, kExperts = 6, kTopK = 3, kWidth = 256;
  for (const Type type : {Type::kF32, Type::kQ4_K}) {
    testing::Rng rng(77);
    const Experts experts(rng, kExperts, kWidth, kWidth, type, type);
    const std::vector<float> x = testing::normal(rng, int64_t{kRows} * kWidth);
    std::vector<int32_t> id;
    std::vector<int32_t> all = {0, 1, 2, 3, 4, 5};
    for (int row = 0; row < kRows; ++row) {
      std::shuffle(all.begin(), all.end(), rng);
      id.insert(id.end(), all.begin(), all.begin() + kTopK);
    }
    const int32_t count = kRows;
    const auto at = [&](int64_t pair) { return static_cast<size_t>(pair) * kWidth; };
    testing::expect_same(format("{}", quant::name(type)), [&](Machine& m) {
      const auto run = [&](const std::vector<const std::byte*>& parts, std::vector<float>& y) {
        m.run(m.ops().expert_ffn,
              ExpertFfn{.n_rows = &count,
                        .x = View<const float>(x.data(), {kRows, kWidth}),
                        .id = View<const int32_t>(id.data(), {kRows, kTopK}),
                        .parts = View<const std::byte* const>(parts.data(), {kExperts, 3}),
                        .shape = experts.shape,
                        .out = View<float>(y.data(), {kRows, kTopK, kWidth})});
      };
      std::vector<float> whole(at(kRows * kTopK), -7.5f), two = whole, picked = whole;
      run(experts.parts, whole);
      std::vector<const std::byte*> some = experts.parts, rest = experts.parts;
      for (int e = 0; e < kExperts; ++e) {
        std::fill_n((e % 2 == 0 ? some : rest).begin() + std::ptrdiff_t{3} * e, 3, nullptr);
      }
      run(some, two);
      for (int64_t pair = 0; pair < kRows * kTopK; ++pair) {
        if (id[static_cast<size_t>(pair)] % 2 != 0) continue;
        EXPECT_EQ(two[at(pair)], -7.5f);
      }
      run(rest, two);
      EXPECT_EQ(two, whole);
      run(std::vector<const std::byte*>(size_t{3} * kExperts, nullptr), whole);
      EXPECT_EQ(two, whole);

      // Pairs on their own, in any order, with the rows that they are for.
      std::vector<int32_t> pairs;
      for (int32_t pair = kRows * kTopK - 1; pair >= 0; pair -= 2) pairs.push_back(pair);
      const auto n = static_cast<int32_t>(pairs.size());
      std::vector<int32_t> pair_id, pair_row;
      for (const int32_t pair : pairs) {
        pair_id.push_back(id[static_cast<size_t>(pair)]);
        pair_row.push_back(pair / kTopK);
      }
      m.run(m.ops().expert_ffn,
            ExpertFfn{.n_rows = &n,
                      .x = View<const float>(x.data(), {kRows, kWidth}),
                      .id = View<const int32_t>(pair_id.data(), {n, 1}),
                      .x_row = View<const int32_t>(pair_row.data(), {n}),
                      .parts = View<const std::byte* const>(experts.parts.data(), {kExperts, 3}),
                      .shape = experts.shape,
                      .out = View<float>(picked.data(), {n, 1, kWidth})});
      for (size_t i = 0; i < pairs.size(); ++i) {
        EXPECT_TRUE(
            std::equal(&picked[i * kWidth], &picked[i * kWidth] + kWidth, &whole[at(pairs[i])]));
      }
      Outputs out;
      out.add("y", whole);
      return out;
    });
  }
}

// A broken expert spoils the rows that chose it, and no other.
TEST(ExpertFfnOp, ABrokenExpertSpoilsItsRowsOnly) {
  testing::Rng rng(3);
  Experts experts(rng, 4, 32, 32, Type::kF32, Type::kF32);
  std::fill(experts.matrices[3 * 2].bytes.begin(), experts.matrices[3 * 2].bytes.end(),
            std::byte{0xff});
  const std::vector<float> x = testing::normal(rng, 3 * 32);
  const std::vector<int32_t> id = {0, 1, 2, 3, 3, 0};
  const int32_t count = 3;
  for (const auto& m : testing::machines()) {
    std::vector<float> y(3 * 2 * 32);
    m->run(m->ops().expert_ffn,
           ExpertFfn{.n_rows = &count,
                     .x = View<const float>(x.data(), {3, 32}),
                     .id = View<const int32_t>(id.data(), {3, 2}),
                     .parts = View<const std::byte* const>(experts.parts.data(), {4, 3}),
                     .shape = experts.shape,
                     .out = View<float>(y.data(), {3, 2, 32})});
    for (size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(std::isnan(y[i]), id[i / 32] == 2) << m->name() << " " << i;
    }
  }
}

TEST(ExpertCombineOp, Parity) {
  testing::Rng rng(4);
  for (int top_k : {1, 2, 10, 64}) {
    for (int width : {1, 33, 64, 157}) {
      for (int n_rows : {0, 1, 3}) {
        const int max_rows = n_rows + 1;
        std::vector<float> expert = testing::normal(rng, int64_t{max_rows} * top_k * width);
        if (n_rows == 3) testing::salt(rng, expert, 40, true);
        const std::vector<float> weight = testing::normal(rng, max_rows * top_k),
                                 shared = testing::normal(rng, max_rows * width),
                                 gate = testing::normal(rng, max_rows);
        std::vector<int32_t> id, all(100);
        for (int e = 0; e < 100; ++e) all[static_cast<size_t>(e)] = e;
        for (int row = 0; row < max_rows; ++row) {
          std::shuffle(all.begin(), all.end(), rng);
          id.insert(id.end(), all.begin(), all.begin() + top_k);
        }
        const int32_t count = n_rows;
        testing::expect_same(format("{} of {}, {} rows", top_k, width, n_rows), [&](Machine& m) {
          std::vector<float> y(static_cast<size_t>(max_rows * width), -7.5f);
          m.run(m.ops().expert_combine,
                ExpertCombine{.n_rows = &count,
                              .expert = View<const float>(expert.data(), {max_rows, top_k, width}),
                              .id = View<const int32_t>(id.data(), {max_rows, top_k}),
                              .weight = View<const float>(weight.data(), {max_rows, top_k}),
                              .shared = View<const float>(shared.data(), {max_rows, width}),
                              .gate_logit = View<const float>(gate.data(), {max_rows, 1}),
                              .y = View<float>(y.data(), {max_rows, width})});
          EXPECT_EQ(y.back(), -7.5f);
          Outputs out;
          out.add("y", y);
          return out;
        });
      }
    }
  }
}

// The sum runs by ascending expert id, whatever order the router named them in.
TEST(ExpertCombineOp, DoesNotDependOnTheOrderOfChoice) {
  testing::Rng rng(5);
  const std::vector<float> expert = testing::normal(rng, 4 * 16), shared = testing::normal(rng, 16);
  const std::vector<int32_t> id = {9, 2, 30, 4};
  const std::vector<float> weight = {0.1f, 0.5f, 0.2f, 0.2f}, gate = {0.3f};
  std::vector<size_t> order = {0, 1, 2, 3};
  std::vector<float> expected;
  do {
    std::vector<float> e, w;
    std::vector<int32_t> ids;
    for (size_t j : order) {
      e.insert(e.end(), expert.begin() + 16 * j, expert.begin() + 16 * (j + 1));
      w.push_back(weight[j]);
      ids.push_back(id[j]);
    }
    const int32_t count = 1;
    for (const auto& m : testing::machines()) {
      std::vector<float> y(16);
      m->run(m->ops().expert_combine,
             ExpertCombine{.n_rows = &count,
                           .expert = View<const float>(e.data(), {1, 4, 16}),
                           .id = View<const int32_t>(ids.data(), {1, 4}),
                           .weight = View<const float>(w.data(), {1, 4}),
                           .shared = View<const float>(shared.data(), {1, 16}),
                           .gate_logit = View<const float>(gate.data(), {1, 1}),
                           .y = View<float>(y.data(), {1, 16})});
      if (expected.empty()) expected = y;
      EXPECT_EQ(y, expected) << m->name();
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(SharedFfnOp, Parity) {
  testing::Rng rng(6);
  struct Case {
    int width, ff;
    Type gate, down;
  };
  for (const Case& c :
       {Case{1, 1, Type::kF32, Type::kF32}, Case{33, 65, Type::kF32, Type::kBF16},
        Case{64, 130, Type::kF16, Type::kF32}, Case{256, 512, Type::kQ4_K, Type::kQ6_K},
        Case{96, 64, Type::kQ8_0, Type::kIQ4_NL}}) {
    for (int n_rows : {0, 1, 2, 7, 33}) {
      const int max_rows = n_rows + 1;
      const testing::TestWeight gate(rng, c.gate, c.ff, c.width, 0.2f),
          up(rng, c.gate, c.ff, c.width, 0.2f), down(rng, c.down, c.width, c.ff, 0.2f);
      const std::vector<float> x = testing::normal(rng, int64_t{max_rows} * c.width);
      const int32_t count = n_rows;
      testing::expect_same(format("{} x {}, {} rows", c.width, c.ff, n_rows), [&](Machine& m) {
        std::vector<float> y(static_cast<size_t>(max_rows * c.width), -7.5f);
        m.run(m.ops().shared_ffn, SharedFfn{.n_rows = &count,
                                            .x = View<const float>(x.data(), {max_rows, c.width}),
                                            .gate = gate.w,
                                            .up = up.w,
                                            .down = down.w,
                                            .y = View<float>(y.data(), {max_rows, c.width})});
        EXPECT_EQ(y.back(), -7.5f);
        Outputs out;
        out.add("y", y);
        return out;
      });
    }
  }
}

}  // namespace
}  // namespace strata::kernels
