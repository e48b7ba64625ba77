#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "strata/base/clock.h"
#include "strata/engine/draft/depth.h"
#include "strata/engine/draft/source.h"
#include "strata/engine/sampler.h"
#include "strata/model/instance.h"

namespace strata::engine {

// Drafts of the model's own draft layer. It reads what the trunk has read, in the same pieces: cell
// i takes the trunk's residual of token i and the token behind it. A chain goes on from the layer's
// own residual and the token guessed, in cells that are taken back afterwards.
class MtpSource final : public DraftSource {
 public:
  // The model has a draft layer. A chain ends in front of a token to which the layer itself gives
  // less than min_probability.
  // Tells `costs` what it measures. All outlive this.
  MtpSource(model::Instance& instance, Sampler& sampler, float min_probability, const Clock& clock,
            StepCosts& costs)
      : instance_(instance),
        sampler_(sampler),
        min_logprob_(min_probability > 0 ? std::optional(std::log(min_probability)) : std::nullopt),
        clock_(clock),
        costs_(costs) {}

  void draft(std::span<DraftJob> jobs) override;
  bool costs() const override { return true; }

 private:
  // A session whose chain goes on, and the row of its last cell.
  struct Chain {
    DraftJob* job;
    int32_t row;
  };
  std::vector<Chain> keep_up(std::span<DraftJob> jobs);
  void go_on(std::vector<Chain>& chains);
  void run(std::span<const int32_t> sources, std::span<const int32_t> outputs);
  void take_guesses(std::vector<Chain>& chains) const;

  model::Instance& instance_;
  Sampler& sampler_;
  std::optional<float> min_logprob_;
  const Clock& clock_;
  StepCosts& costs_;
};

}  // namespace strata::engine
