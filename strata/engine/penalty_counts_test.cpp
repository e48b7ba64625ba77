#include "strata/engine/penalty_counts.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace strata::engine {
namespace {

using Counts = std::map<int32_t, std::pair<int32_t, int32_t>>;  // id: times in the answer, repeated

Counts of(const PenaltyCounts& penalties) {
  Counts result;
  for (const kernels::TokenCount& c : penalties.counts()) {
    EXPECT_TRUE(result.emplace(c.id, std::pair(c.n, c.repeated)).second) << "id twice: " << c.id;
  }
  return result;
}

// As the words say it.
Counts naive(const wire::Sampling& s, const std::vector<int32_t>& prompt,
             const std::vector<int32_t>& answer) {
  Counts result;
  if (s.presence_penalty != 0 || s.frequency_penalty != 0) {
    for (const int32_t id : answer) ++result[id].first;
  }
  if (s.repetition_penalty == 1) return result;
  std::vector<int32_t> all = prompt;
  all.insert(all.end(), answer.begin(), answer.end());
  const size_t window =
      s.repetition_window < 0 ? all.size() : static_cast<size_t>(s.repetition_window);
  for (size_t i = all.size() - std::min(window, all.size()); i < all.size(); ++i) {
    result[all[i]].second = 1;
  }
  return result;
}

TEST(PenaltyCounts, AreWhatARecountGives) {
  std::mt19937 random(3);
  const auto draw = [&] { return static_cast<int32_t>(random() % 12); };
  for (const int32_t window : {-1, 0, 1, 2, 7, 64, 1 << 30}) {
    for (const float repetition : {1.0F, 1.3F}) {
      for (const float presence : {0.0F, 0.5F}) {
        wire::Sampling s;
        s.presence_penalty = presence;
        s.repetition_penalty = repetition;
        s.repetition_window = window;
        for (const size_t n_prompt : {1, 5, 90}) {
          std::vector<int32_t> prompt(n_prompt), answer;
          for (int32_t& id : prompt) id = draw();
          PenaltyCounts counts(s, prompt);
          for (int i = 0; i < 100; ++i) {
            // Guesses come and go.
            std::vector<int32_t> ahead(static_cast<size_t>(i % 5));
            std::vector<std::optional<int32_t>> left;
            std::vector<int32_t> guessed = answer;
            for (int32_t& id : ahead) {
              guessed.push_back(id = draw());
              left.push_back(counts.push(id));
            }
            ASSERT_EQ(of(counts), naive(s, prompt, guessed)) << window << " after " << i;
            for (size_t j = ahead.size(); j > 0; --j) counts.take_back(ahead[j - 1], left[j - 1]);
            ASSERT_EQ(of(counts), naive(s, prompt, answer)) << window << " after " << i;
            answer.push_back(draw());
            counts.push(answer.back());
          }
        }
      }
    }
  }
}

TEST(PenaltyCounts, OfNoPenaltyThereAreNone) {
  const std::vector<int32_t> prompt = {1, 2, 3};
  PenaltyCounts counts({}, prompt);
  counts.push(4);
  EXPECT_TRUE(counts.counts().empty());
}

// Half a million different tokens, looked at after each: hours, if a token cost what the answer
// has.
TEST(PenaltyCounts, ATokenCostsNoMoreInALongAnswer) {
  wire::Sampling s;
  s.frequency_penalty = 0.1F;
  s.repetition_penalty = 1.1F;
  s.repetition_window = -1;
  PenaltyCounts counts(s, {});
  constexpr int32_t kTokens = 500'000;
  for (int32_t id = 0; id < kTokens; ++id) {
    counts.push(id);
    ASSERT_EQ(counts.counts().size(), static_cast<size_t>(id) + 1);
  }
}

}  // namespace
}  // namespace strata::engine
