#pragma once

#include <cstdint>
#include <vector>

#include "strata/base/clock.h"
#include "strata/model/instance.h"

namespace strata::engine {

// What a window of rows costs against one row: the step that verifies drafts.
struct WindowTimes {
  // Of each round: a step of one row, and right after it one of all rows. Logits of every row are
  // computed, none is kept, so all steps stand at the same place.
  std::vector<double> one_ms, window_ms;
  // Distinct experts that a layer read, on average: what a window needs beyond one row.
  double one_experts = 0, window_experts = 0;
};

// Rows are random tokens behind a made-up context (model::seed_context) of `context` tokens.
// The instance is loaded and no request runs; its options give logits for `rows` rows.
// Errors: as those of a step; kInvalidArgument if context and rows do not fit.
WindowTimes time_window(model::Instance& instance, int64_t context, int rows, int rounds,
                        uint64_t seed, const Clock& clock = steady_clock());

// The draft layer: a pass that reads two tokens and guesses one, and one that goes on from a guess.
struct DraftTimes {
  double first_ms = 0, next_ms = 0;  // the least of the rounds
};

// Of made-up tokens, without sampling. The instance is loaded with its draft layer, and no request
// runs. Errors: as those of a step.
DraftTimes time_drafts(model::Instance& instance, int rounds, const Clock& clock = steady_clock());

}  // namespace strata::engine
