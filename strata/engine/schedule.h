#pragma once

#include <memory>
#include <span>

#include "strata/engine/draft/depth.h"
#include "strata/engine/request.h"
#include "strata/engine/step.h"

namespace strata::engine {

// Chooses the rows of the next step, at most `room`: the windows of all running answers first, then
// prompts, together at most `prompt_rows`. Of several prompts the oldest gets half, so that it is
// read soon, and the others the rest, so that a short one need not wait for a long one.
StepPlan plan_step(std::span<const std::unique_ptr<Request>> running, size_t room,
                   size_t prompt_rows);

// How much of a prompt a step may read beside running answers, so that these keep most of their
// speed: a piece at a time, and the next one when the answers have had their share since.
class PromptPace {
 public:
  // Rows of prompts for the next step, of at most `chunk`.
  size_t rows(size_t chunk, bool answers_run) const;
  // A step took so long.
  void add(int answer_rows, int prompt_rows, double ms, const StepCosts& costs);

 private:
  double row_ms_ = 0;   // of a prompt row in a large piece; 0: unknown
  double debt_ms_ = 0;  // what prompts have taken from the answers beyond their share
};

}  // namespace strata::engine
