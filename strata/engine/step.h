#pragma once

#include <span>
#include <vector>

#include "strata/engine/request.h"
#include "strata/engine/sampler.h"
#include "strata/model/instance.h"

namespace strata::engine {

// The rows that one request contributes to a step.
struct StepPart {
  Request* request = nullptr;
  std::vector<int32_t> ids;
  bool samples = false;  // the last row's logits give the next token
};
using StepPlan = std::vector<StepPart>;

struct StepTicket {
  StepPlan parts;
};

// The ids sampled, in the order of the parts that sample.
struct StepResult {
  std::vector<int32_t> chosen;
};

// Runs steps: submit lays out and queues, finish waits and commits. Written for several steps in
// flight; one at a time until stages overlap.
class StepRunner {
 public:
  StepRunner(model::Instance& instance, Sampler& sampler)
      : instance_(instance), sampler_(sampler) {}

  // Errors: whatever the device says; the step's sessions are then as they were before.
  StepTicket submit(StepPlan&& plan);
  // Errors: as submit.
  StepResult finish(StepTicket&& ticket);

 private:
  void withdraw(const StepPlan& parts);

  model::Instance& instance_;
  Sampler& sampler_;
};

}  // namespace strata::engine
