#include "strata/kernels/ops/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "strata/base/format.h"
#include "strata/kernels/test_machines.h"

namespace strata::kernels {
namespace {

using testing::Machine;
using testing::Outputs;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Batch {
  std::vector<std::vector<float>> logits;  // rows
  std::vector<SampleParams> params;
  std::vector<TokenCount> counts;
  std::vector<TokenBias> biases;
  std::vector<uint64_t> masks = {};              // [rows, words], if any
  std::vector<RowLogprobs>* logprobs = nullptr;  // where they go, if wanted
};

std::vector<int32_t> sample(Machine& m, const Batch& b) {
  const auto rows = static_cast<int64_t>(b.logits.size());
  std::vector<float> logits;
  for (const auto& row : b.logits) logits.insert(logits.end(), row.begin(), row.end());
  std::vector<int32_t> chosen(static_cast<size_t>(rows), -7);
  const auto n_rows = static_cast<int32_t>(rows);
  const int64_t vocab = static_cast<int64_t>(logits.size()) / rows;
  const View<const uint64_t> masks =
      b.masks.empty() ? View<const uint64_t>()
                      : View<const uint64_t>(b.masks.data(), {rows, mask_words(vocab)});
  View<RowLogprobs> logprobs;
  if (b.logprobs != nullptr) {
    b.logprobs->resize(static_cast<size_t>(rows));
    logprobs = View<RowLogprobs>(b.logprobs->data(), {rows});
  }
  m.run(m.ops().sample_rows,
        SampleRows{.n_rows = &n_rows,
                   .logits = View<float>(logits.data(), {rows, vocab}),
                   .params = View<const SampleParams>(b.params.data(), {rows}),
                   .counts = View<const TokenCount>(b.counts.data(),
                                                    {static_cast<int64_t>(b.counts.size())}),
                   .biases = View<const TokenBias>(b.biases.data(),
                                                   {static_cast<int64_t>(b.biases.size())}),
                   .masks = masks,
                   .chosen = View<int32_t>(chosen.data(), {rows}),
                   .logprobs = logprobs});
  return chosen;
}

int32_t sample_one(Machine& m, const std::vector<float>& logits, const SampleParams& params) {
  return sample(m, {{logits}, {params}, {}, {}})[0];
}

// One draw for each position.
std::vector<int32_t> sample_positions(Machine& m, const std::vector<float>& logits, SampleParams p,
                                      int n) {
  Batch b;
  b.logits.assign(static_cast<size_t>(n), logits);
  for (p.position = 0; p.position < n; ++p.position) b.params.push_back(p);
  return sample(m, b);
}

// The candidates that the filters leave, and their probabilities, in double.
std::map<int32_t, double> plain_candidates(const std::vector<float>& logits,
                                           const SampleParams& p) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  if (p.top_k > 0 && static_cast<size_t>(p.top_k) < order.size()) order.resize(p.top_k);
  std::vector<double> weight;
  for (int32_t id : order) {
    weight.push_back(
        std::exp((static_cast<double>(logits[id]) - logits[order[0]]) / p.temperature));
  }
  const double total = std::accumulate(weight.begin(), weight.end(), 0.0);
  std::map<int32_t, double> kept;
  double cumulative = 0, sum = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && p.top_p < 1 && cumulative >= p.top_p * total) break;
    if (i > 0 && weight[i] < p.min_p) break;
    cumulative += weight[i];
    kept[order[i]] = weight[i];
    sum += weight[i];
  }
  for (auto& [id, w] : kept) w /= sum;
  return kept;
}

std::vector<float> some_logits(uint32_t seed, int n, float scale = 2) {
  testing::Rng rng(seed);
  return testing::normal(rng, n, scale);
}

TEST(SampleOp, GreedyTakesTheLowestOfTheBest) {
  for (const auto& m : testing::machines()) {
    EXPECT_EQ(sample_one(*m, {1, 3, 2, 3, 3}, {}), 1) << m->name();
    EXPECT_EQ(sample_one(*m, {-kInf, -kInf, -5}, {}), 2);
    EXPECT_EQ(sample_one(*m, std::vector<float>(7, 0.0f), {}), 0);
    EXPECT_EQ(sample_one(*m, {4}, {}), 0);
  }
}

// F-109: a broken row is named by -1 instead of a token; a row with some finite logits is not.
TEST(SampleOp, BrokenLogits) {
  SampleParams warm{.temperature = 0.7f, .top_p = 0.9f, .min_p = 0.01f, .top_k = 3};
  for (const auto& m : testing::machines()) {
    for (const SampleParams& p : {SampleParams{}, SampleParams{.temperature = 1}, warm}) {
      EXPECT_EQ(sample_one(*m, std::vector<float>(9, kNan), p), -1) << m->name();
      EXPECT_EQ(sample_one(*m, std::vector<float>(9, -kInf), p), -1);
      EXPECT_EQ(sample_one(*m, std::vector<float>(9, kInf), p), -1);
      EXPECT_EQ(sample_one(*m, {0, kInf, 1}, p), -1);
      EXPECT_EQ(sample_one(*m, {kNan, -kInf, 1, kNan}, p), 2);
      const int32_t id = sample_one(*m, std::vector<float>(9, 1.5f), p);
      EXPECT_TRUE(id >= 0 && id < 9) << id;
    }
    SampleParams narrow{.temperature = 1, .min_p = 1, .top_k = 1};
    EXPECT_EQ(sample_one(*m, {1, 2, 2}, narrow), 1);
    EXPECT_EQ(sample_one(*m, {1, 2, 2}, {.temperature = 1, .top_p = 0}), 1);
  }
}

TEST(SampleOp, AColdTemperatureIsGreedy) {
  for (const auto& m : testing::machines()) {
    for (float t : {0.0f, -1.0f, 1e-10f, 1e-30f, 1e-40f, kNan}) {
      EXPECT_EQ(sample_one(*m, {0, -3, 7, 7, 5}, {.temperature = t}), 2) << m->name() << " " << t;
      EXPECT_EQ(sample_one(*m, {0, -3, 7, 7, 5}, {.temperature = t, .top_p = 0.5f, .top_k = 3}), 2);
    }
  }
}

TEST(SampleOp, Parity) {
  for (uint32_t round = 0; round < 30; ++round) {
    testing::Rng rng(round + 1);
    Batch b;
    const int vocab = round % 3 == 0 ? 1 + static_cast<int>(rng() % 40) : 300;
    for (int row = 0; row < 7; ++row) {
      std::vector<float> x = testing::normal(rng, vocab, 4);
      if (round % 4 == 0) testing::salt(rng, x, 20, true);
      if (round % 4 == 1) {
        for (float& v : x) v = std::round(v);
      }
      b.logits.push_back(x);
      SampleParams p{.temperature = row % 3 == 0 ? 0.0f : 0.3f * static_cast<float>(row),
                     .top_p = row % 2 == 0 ? 1.0f : 0.8f,
                     .min_p = row % 4 == 0 ? 0.02f : 0.0f,
                     .presence = 0.5f,
                     .frequency = 0.25f,
                     .repetition = 1.2f,
                     .top_k = row % 3 == 1 ? 5 : 0,
                     .first_count = static_cast<int32_t>(b.counts.size()),
                     .first_bias = static_cast<int32_t>(b.biases.size()),
                     .seed = round * 100 + static_cast<uint64_t>(row),
                     .position = row * 7};
      for (int32_t id = 0; id < std::min(vocab, 3); ++id, ++p.n_counts, ++p.n_bias) {
        b.counts.push_back({.id = id, .n = row % 3, .repeated = row % 2});
        b.biases.push_back({.id = vocab - 1 - id, .bias = 0.5f});
      }
      b.params.push_back(p);
    }
    testing::expect_same(format("round {}", round), [&](Machine& m) {
      Outputs out;
      out.add("chosen", std::span<const int32_t>(sample(m, b)));
      return out;
    });
  }
}

// Every token that the filters leave is drawn sooner or later, and no other ever.
TEST(SampleOp, FiltersEqualThePlainRule) {
  const std::vector<SampleParams> cases = {
      {.temperature = 1, .top_k = 1},
      {.temperature = 3, .top_k = 7},
      {.temperature = 2, .top_p = 0.5f},
      {.temperature = 4, .top_p = 0.99f},
      {.temperature = 2, .min_p = 0.3f},
      {.temperature = 0.5f, .min_p = 0.05f},
      {.temperature = 4, .top_p = 0.7f, .min_p = 0.1f, .top_k = 9},
      {.temperature = 5},
  };
  Machine& m = *testing::machines().back();
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    std::vector<float> logits = some_logits(seed, 40);
    if (seed == 4) {
      for (float& v : logits) v = std::round(v);  // ties at the edge: the lower id stays
    }
    for (SampleParams p : cases) {
      std::set<int32_t> expected, drawn;
      double rarest = 1;
      for (const auto& [id, probability] : plain_candidates(logits, p)) {
        expected.insert(id);
        rarest = std::min(rarest, probability);
      }
      // A candidate of probability p is missed by 20 / p draws once in 5e8.
      const int draws = std::min(20000, static_cast<int>(20 / rarest));
      p.seed = seed;
      for (int32_t id : sample_positions(m, logits, p, draws)) drawn.insert(id);
      if (20 / rarest <= 20000) {
        EXPECT_EQ(drawn, expected) << "top_k " << p.top_k << " top_p " << p.top_p;
      } else {
        EXPECT_TRUE(std::includes(expected.begin(), expected.end(), drawn.begin(), drawn.end()));
      }
    }
  }
}

TEST(SampleOp, DrawsFollowTheSoftmax) {
  constexpr int kDraws = 20000;
  Machine& m = *testing::machines().back();
  for (const SampleParams& wanted :
       {SampleParams{.temperature = 0.8f}, SampleParams{.temperature = 1.3f, .top_k = 12},
        SampleParams{.temperature = 1, .top_p = 0.9f}}) {
    const std::vector<float> logits = some_logits(11, 24, 1);
    SampleParams p = wanted;
    const std::map<int32_t, double> expected = plain_candidates(logits, p);
    std::map<int32_t, int> seen;
    p.seed = 99;
    for (int32_t id : sample_positions(m, logits, p, kDraws)) ++seen[id];
    double chi2 = 0;
    for (const auto& [id, probability] : expected) {
      const double mean = probability * kDraws;
      ASSERT_GE(mean, 5) << "too rare for the test";
      chi2 += (seen[id] - mean) * (seen[id] - mean) / mean;
    }
    // Mean k, deviation sqrt(2 k); the draws are fixed. Four deviations: 1 in 10,000 by chance.
    const double freedom = static_cast<double>(expected.size()) - 1;
    EXPECT_LE(chi2, freedom + 4 * std::sqrt(2 * freedom));
    EXPECT_GE(chi2, freedom - 4 * std::sqrt(2 * freedom));
  }
}

TEST(SampleOp, TheDrawIsKeyedBySeedAndPosition) {
  const std::vector<float> logits = some_logits(12, 200, 0.5f);
  Machine& m = *testing::machines().back();
  const auto run = [&](uint64_t seed) {
    return sample_positions(m, logits, {.temperature = 1, .seed = seed}, 50);
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
  // Other rows of the batch change nothing.
  Batch b;
  for (int i = 0; i < 6; ++i) {
    b.logits.push_back(i == 3 ? logits : some_logits(50 + static_cast<uint32_t>(i), 200));
    b.params.push_back({.temperature = 1, .seed = i == 3 ? 1U : 7U, .position = 5});
  }
  EXPECT_EQ(sample(m, b)[3], run(1)[5]);
}

// The noise of a token does not depend on the filters: as long as the winner passes, it stays.
TEST(SampleOp, FiltersDoNotMoveTheNoise) {
  const std::vector<float> logits = some_logits(13, 100, 1);
  Machine& m = *testing::machines().back();
  int same = 0;
  for (int i = 0; i < 300; ++i) {
    const int32_t open = sample_one(m, logits, {.temperature = 1, .seed = 5, .position = i});
    SampleParams p{.temperature = 1, .top_k = 20, .seed = 5, .position = i};
    if (!plain_candidates(logits, p).contains(open)) continue;
    EXPECT_EQ(sample_one(m, logits, p), open);
    ++same;
  }
  EXPECT_GT(same, 50);
}

TEST(SampleOp, PenaltiesAndBias) {
  Machine& m = *testing::machines().back();
  const auto greedy = [&](std::vector<float> logits, SampleParams p, std::vector<TokenCount> counts,
                          std::vector<TokenBias> biases) {
    p.n_counts = static_cast<int32_t>(counts.size());
    p.n_bias = static_cast<int32_t>(biases.size());
    return sample(m, {{std::move(logits)}, {p}, std::move(counts), std::move(biases)})[0];
  };
  // Presence does not grow with the count, frequency does.
  EXPECT_EQ(greedy({2, 1.5f}, {.presence = 0.4f}, {{0, 5, 0}}, {}), 0);
  EXPECT_EQ(greedy({2, 1.5f}, {.presence = 0.6f}, {{0, 1, 0}}, {}), 1);
  EXPECT_EQ(greedy({2, 1.5f}, {.frequency = 0.2f}, {{0, 2, 0}}, {}), 0);
  EXPECT_EQ(greedy({2, 1.5f}, {.frequency = 0.2f}, {{0, 3, 0}}, {}), 1);
  EXPECT_EQ(greedy({2, 1.5f}, {.presence = 9, .frequency = 9}, {{0, 0, 1}}, {}), 0);
  // Repetition divides what is above 0 and multiplies what is below.
  EXPECT_EQ(greedy({2, 1.5f}, {.repetition = 1.5f}, {{0, 0, 1}}, {}), 1);
  EXPECT_EQ(greedy({2, 1.5f}, {.repetition = 1.5f}, {{0, 4, 0}}, {}), 0);
  EXPECT_EQ(greedy({-2, -2.5f}, {.repetition = 1.5f}, {{0, 0, 1}}, {}), 1);
  EXPECT_EQ(greedy({1, 2, 3}, {}, {}, {{0, 2.5f}}), 0);
  EXPECT_EQ(greedy({1, 2, 3}, {}, {}, {{2, -100.0f}, {1, -100.0f}}), 0);
  // Everything lowered alike: the order stays.
  EXPECT_EQ(greedy({1, 3, 2}, {}, {}, {{0, -100.0f}, {1, -100.0f}, {2, -100.0f}}), 1);
}

// What a mask allows is what can be drawn, whatever the other settings; all set is no mask at all.
TEST(SampleOp, MasksLeaveTheAllowedTokens) {
  constexpr int kVocab = 150, kRows = 40;
  for (const auto& machine : testing::machines()) {
    Machine& m = *machine;
    for (const SampleParams& p : {SampleParams{}, SampleParams{.temperature = 1.5f},
                                  SampleParams{.temperature = 1, .top_p = 0.9f, .top_k = 30}}) {
      Batch b, open;
      for (int row = 0; row < kRows; ++row) {
        b.logits.push_back(some_logits(100 + static_cast<uint32_t>(row), kVocab));
        b.params.push_back(p);
        b.params.back().position = row;
        open.params.push_back(b.params.back());
        b.params.back().mask = row;
        // One token, a few, all.
        for (int word = 0; word < mask_words(kVocab); ++word) {
          const uint64_t some = row % 3 == 1 ? uint64_t{0x8000000000100001} << (row % 7) : 0;
          b.masks.push_back(row % 3 == 2 ? ~uint64_t{0} : some);
        }
        if (row % 3 == 0) b.masks[static_cast<size_t>(row) * 3 + 2] = uint64_t{1} << (row % 20);
      }
      open.logits = b.logits;
      const std::vector<int32_t> chosen = sample(m, b);
      const std::vector<int32_t> unmasked = sample(m, open);
      for (int row = 0; row < kRows; ++row) {
        if (row % 3 == 0) {
          EXPECT_EQ(chosen[row], 128 + row % 20);
        }
        if (row % 3 == 2) {
          EXPECT_EQ(chosen[row], unmasked[row]);
        }
        const int32_t id = chosen[row];
        EXPECT_EQ(b.masks[static_cast<size_t>(row) * 3 + id / 64] >> (id % 64) & 1, 1u) << row;
      }
    }
    Batch none{{some_logits(1, kVocab)}, {{.mask = 0}}, {}, {}, {0, 0, 0}};
    EXPECT_EQ(sample(m, none)[0], -1);
  }
}

TEST(SampleOp, LogprobsAreThoseOfTheLogitsAsTheyCame) {
  constexpr int kVocab = 200;
  for (const auto& machine : testing::machines()) {
    Machine& m = *machine;
    std::vector<RowLogprobs> got;
    Batch b;
    b.logprobs = &got;
    b.biases = {{3, 50.0f}};
    b.masks.assign(4 * 4, 0);
    b.masks[3 * 4] = 1 << 7;
    for (uint32_t row = 0; row < 4; ++row) b.logits.push_back(some_logits(70 + row, kVocab));
    b.params = {{.n_top = 0},
                {.n_bias = 1, .n_top = 20},
                {.temperature = 2, .top_k = 3, .n_top = 5, .position = 9},
                {.mask = 3, .n_top = 1}};
    const std::vector<int32_t> chosen = sample(m, b);
    EXPECT_EQ(chosen[1], 3);
    EXPECT_EQ(chosen[3], 7);
    for (size_t row = 0; row < 4; ++row) {
      std::vector<float> x = b.logits[row];
      const double best = *std::max_element(x.begin(), x.end());
      double total = 0;
      for (const float v : x) total += std::exp(v - best);
      const auto logprob = [&](int32_t id) { return x[id] - best - std::log(total); };
      EXPECT_NEAR(got[row].chosen, logprob(chosen[row]), 1e-5);
      ASSERT_EQ(got[row].n_top, b.params[row].n_top);
      std::vector<int32_t> order(x.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](int32_t i, int32_t j) { return x[i] > x[j]; });
      double sum = 0;
      for (int i = 0; i < got[row].n_top; ++i) {
        EXPECT_EQ(got[row].id[i], order[i]);
        EXPECT_NEAR(got[row].logprob[i], logprob(order[i]), 1e-5);
        sum += std::exp(got[row].logprob[i]);
      }
      EXPECT_LE(sum, 1 + 1e-5);
      EXPECT_LE(got[row].chosen, 0);
    }
  }
}

}  // namespace
}  // namespace strata::kernels
