#pragma once

#include <memory>
#include <span>

#include "strata/engine/request.h"
#include "strata/engine/step.h"

namespace strata::engine {

// Chooses the rows of the next step, at most `room`: a row of every running answer first, then
// prompts up to the room, the oldest first, so that a long prompt never starves the answers.
StepPlan plan_step(std::span<const std::unique_ptr<Request>> running, size_t room);

}  // namespace strata::engine
