#pragma once

#include <memory>
#include <span>
#include <vector>

#include "strata/base/clock.h"
#include "strata/engine/draft/depth.h"
#include "strata/engine/draft/source.h"
#include "strata/engine/sampler.h"
#include "strata/engine/step.h"
#include "strata/model/instance.h"

namespace strata::engine {

struct DraftOptions {
  int most = 0;           // guesses of a step; 0: none
  bool automatic = true;  // as many as pay, up to `most`; else always `most`
  float min_probability = 0;
  // Asked before the others; outlives the engine. May be null.
  DraftSource* first_source = nullptr;
};

// Has guesses made for the sessions of a step, each by the first source that has some, and learns
// from what became of them. Guesses change how fast answers come, never what they say.
class Drafter {
 public:
  // With the draft layer if the instance has loaded it.
  Drafter(model::Instance& instance, Sampler& sampler, const DraftOptions& options,
          const Clock& clock);

  bool on() const { return options_.most > 0; }
  // For a request that is about to start.
  void begin(Request& request) const;
  // Before the answers take the tokens of a step.
  void learn(const StepPlan& plan, const StepResult& result, double ms);
  // After: for the next step of each session that goes on. Errors: kDeviceLost. Others are a
  // warning, and cost guesses.
  void draft(const StepPlan& plan, const StepResult& result);

  StepCosts& costs() { return costs_; }
  const wire::Drafts& totals() const { return totals_; }

 private:
  struct Source {
    DraftSource* source = nullptr;
    Experience experience{};
    int n_failures = 0;
    bool broken = false;
  };
  std::vector<DraftJob> jobs_after(const StepPlan& plan, const StepResult& result) const;
  int most_for(const Request& request) const;
  void ask(size_t index, std::span<DraftJob> jobs);
  int choose(size_t index, Request& request, std::span<const DraftJob> jobs);
  void follow_or_rest(std::span<DraftJob> jobs) const;

  model::Instance& instance_;
  DraftOptions options_;
  const Clock& clock_;
  std::vector<std::unique_ptr<DraftSource>> own_;
  std::vector<Source> sources_;
  StepCosts costs_;
  wire::Drafts totals_;
};

}  // namespace strata::engine
