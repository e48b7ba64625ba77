#pragma once

#include <functional>
#include <map>
#include <vector>

#include "strata/engine/draft/source.h"
#include "strata/engine/request.h"

namespace strata::engine::testing {

// Guesses for requests whose answers are known, right and wrong as the test says.
class LyingSource final : public DraftSource {
 public:
  // By the request's seed: the tokens that come.
  std::map<uint64_t, std::vector<int32_t>> answers;
  // Of so many guesses, for the token with this number, how many are right before the first lie.
  std::function<size_t(size_t token, size_t n)> n_right = [](size_t, size_t n) { return n; };
  std::function<size_t(size_t token)> n_guesses = [](size_t) { return size_t{kMaxGuesses}; };

  void draft(std::span<DraftJob> jobs) override {
    for (DraftJob& job : jobs) {
      const size_t at = job.request->answer.size();
      const auto known = answers.find(job.request->seed);
      if (job.n_wanted == 0 || known == answers.end()) continue;
      const size_t n = std::min(static_cast<size_t>(job.n_wanted), n_guesses(at));
      const size_t right = n_right(at, n);
      for (size_t i = 0; i < n; ++i) {
        const bool told = i < right && at + i < known->second.size();
        const int32_t truth = at + i < known->second.size() ? known->second[at + i] : 1;
        job.guesses.push_back(told ? truth : (truth + 1 + static_cast<int32_t>(i)) % 400);
      }
    }
  }
  bool costs() const override { return false; }
};

}  // namespace strata::engine::testing
