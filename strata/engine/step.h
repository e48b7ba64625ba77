#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "strata/engine/answers.h"
#include "strata/engine/request.h"
#include "strata/engine/sampler.h"
#include "strata/model/instance.h"

namespace strata::engine {

// The rows that one request contributes to a step: a piece of its prompt, or its last token and the
// guesses behind it.
struct StepPart {
  Request* request = nullptr;
  std::vector<int32_t> ids;
  int n_outputs = 0;     // so many of the last rows give tokens
  bool decodes = false;  // a window, not a piece of the prompt
};
using StepPlan = std::vector<StepPart>;

// "a step of 18 rows (16 of prompts, 2 answers)".
std::string step_text(const StepPlan& plan);

// How long a step may take before it is given up.
struct StepLimit {
  std::chrono::milliseconds base{60'000}, per_row{1'000};
  std::chrono::milliseconds of(int n_rows) const { return base + n_rows * per_row; }
};

// Every wait within a step ends with the step's limit.
class StepBound {
 public:
  StepBound(device::WaitRegistry& waits, const StepLimit& limit, int n_rows) : waits_(waits) {
    waits.set_bound(device::Deadline::within(limit.of(n_rows), waits.clock()));
  }
  ~StepBound() { waits_.clear_bound(); }
  StepBound(const StepBound&) = delete;
  StepBound& operator=(const StepBound&) = delete;

 private:
  device::WaitRegistry& waits_;
};

struct StepTicket {
  StepPlan parts;
  std::unique_ptr<StepBound> bound;
};

// What a step gave. Of each part, in order:
struct StepResult {
  struct Part {
    std::vector<int32_t> tokens;                // the next of the answer; -1: no logit was finite
    std::vector<wire::TokenLogprobs> logprobs;  // of each, if the request asks for them
    int n_kept = 0;                             // rows that are committed
  };
  std::vector<Part> parts;
  int n_rows = 0;
};

// Runs steps: submit lays out and queues, finish waits, accepts the guesses that are right, and
// commits. Written for several steps in flight; one at a time until stages overlap.
//
// Of both, errors: whatever the device says. The step then never happened: none of its work is
// queued any more, and its sessions are as they were before. kDeviceLost: that could not be had,
// and nothing here is of use any more.
class StepRunner {
 public:
  // All outlive this.
  StepRunner(model::Instance& instance, Sampler& sampler, const Answers& answers,
             const StepLimit& limit)
      : instance_(instance), sampler_(sampler), answers_(answers), limit_(limit) {}

  StepTicket submit(StepPlan plan);
  StepResult finish(StepTicket&& ticket);

 private:
  void queue(const StepPlan& parts);
  StepResult accept(const StepPlan& parts) const;
  void replay(const StepPlan& parts, const StepResult& result);
  void withdraw(const StepPlan& parts);

  model::Instance& instance_;
  Sampler& sampler_;
  const Answers& answers_;
  StepLimit limit_;
};

// Within a handler of what went wrong in queued work: waits until nothing of it is queued any more,
// and returns the reason. What is left reads tables that the next step overwrites, and writes to
// slots and pages that may go to other sessions.
// Errors: kDeviceLost if that was it, or if the rest does not end within the limit; Instance::hang
// then tells what.
std::string settle_failure(model::Instance& instance, const char* what,
                           std::chrono::milliseconds limit = std::chrono::minutes(1));

}  // namespace strata::engine
