#pragma once

#include "strata/model/instance.h"
#include "strata/wire/messages.h"

namespace strata::engine {

// What an engine tells of its memory. The first from the end of prepare() on.
wire::MemoryPlan memory_plan(model::Instance& instance);
// Of all steps so far; between two of them.
wire::ExpertReads expert_reads(const model::Model& model);

}  // namespace strata::engine
