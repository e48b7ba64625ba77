#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "strata/base/view.h"
#include "strata/model/instance.h"

namespace strata::engine {

// Logits of every token of given sequences, for comparison with stored ones. Uses the instance's
// model directly; the engine of that instance must not run at the same time.
class Evaluator {
 public:
  // Rows [first, first + n) of the trunk (draft 0) or of the draft that is this many steps behind
  // it; [n, vocabulary]. The view lives until the call returns.
  using OnRows = std::function<void(int draft, size_t first, View<const float> logits)>;

  // The instance is loaded, has the draft layer if drafts are asked for, and a slot for each draft.
  explicit Evaluator(model::Instance& instance) : instance_(instance) {}

  // In a fresh session, in chunks of the instance's size. Draft N is computed for all cells at once
  // from the true tokens: cell i takes the residual of step N - 1 at cell i and ids[i + N], attends
  // to the cells of step N alone, and has ids.size() - N rows.
  // Errors: kInvalidArgument if the ids do not fit into the context or the vocabulary; kDevice;
  // kInternal, naming the row, for logits that are no numbers.
  void run(std::span<const int32_t> ids, int n_drafts, const OnRows& on_rows);

 private:
  using Pass = void (model::Model::*)();
  void step(model::SessionState& session, std::span<const int32_t> ids, int draft, size_t first,
            const OnRows& on_rows);

  model::Instance& instance_;
};

// How far logits are from those that they should be; grows row by row.
struct Difference {
  int64_t n_rows = 0;
  double max_abs = 0;
  double sum_kl = 0;        // of softmax(reference) against softmax(ours), in nats
  int64_t n_same_best = 0;  // rows whose largest logit is the same one; the lowest id wins a tie

  void add(std::span<const float> ours, std::span<const float> reference);
  double mean_kl() const { return n_rows == 0 ? 0 : sum_kl / static_cast<double>(n_rows); }
  double agreement() const {
    return n_rows == 0 ? 0 : static_cast<double>(n_same_best) / static_cast<double>(n_rows);
  }
};

// Minus the natural logarithm of the probability of `id`.
double negative_log_likelihood(std::span<const float> logits, int32_t id);

}  // namespace strata::engine
