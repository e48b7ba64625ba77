#pragma once

#include <string>
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
//
// Of both, errors: whatever the device says. The step then never happened: none of its work is
// queued any more, and its sessions are as they were before. kDeviceLost: that could not be had,
// and nothing here is of use any more.
class StepRunner {
 public:
  StepRunner(model::Instance& instance, Sampler& sampler)
      : instance_(instance), sampler_(sampler) {}

  StepTicket submit(StepPlan plan);
  StepResult finish(StepTicket&& ticket);

 private:
  void queue(const StepPlan& parts);
  void withdraw(const StepPlan& parts);
  void settle(const std::string& why);

  model::Instance& instance_;
  Sampler& sampler_;
};

}  // namespace strata::engine
