#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "strata/kernels/ops/sample.h"
#include "strata/wire/messages.h"

namespace strata::engine {

// The tokens that the penalties of a request look at, as the sampling op wants them: how often each
// stands in the answer, and whether it is in the window of the repetition penalty. Kept up to date
// token by token, in a time that does not grow with the answer.
class PenaltyCounts {
 public:
  PenaltyCounts(const wire::Sampling& sampling, std::span<const int32_t> prompt);

  // The next token of the answer. Returns the one that left the window for it.
  std::optional<int32_t> push(int32_t id);
  // Takes back the last push, of this id, that returned this.
  void take_back(int32_t id, std::optional<int32_t> left);
  // One an id, in no order; empty if no penalty is on.
  std::span<const kernels::TokenCount> counts() const { return counts_; }

 private:
  size_t at(int32_t id);
  void enter(int32_t id);
  void leave(int32_t id);
  void drop_unused(size_t index);

  bool answer_counts_, repeats_;
  int32_t window_;              // tokens; -1: all
  std::deque<int32_t> recent_;  // of a window with an end
  std::vector<kernels::TokenCount> counts_;
  std::vector<int32_t> in_window_;  // times, of the id of the same index
  std::unordered_map<int32_t, size_t> index_;
};

}  // namespace strata::engine
