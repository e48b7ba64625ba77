#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "strata/base/clock.h"
#include "strata/engine/answers.h"
#include "strata/engine/drafter.h"
#include "strata/engine/prefix_cache.h"
#include "strata/engine/request.h"
#include "strata/engine/sampler.h"
#include "strata/engine/schedule.h"
#include "strata/engine/step.h"
#include "strata/model/instance.h"
#include "strata/text/tokenizer.h"
#include "strata/wire/messages.h"

namespace strata::engine {

struct EngineHooks {
  // All events of a step, on the engine's thread; must not wait.
  std::function<void(std::span<const wire::Addressed>)> emit;
  // True while the receiver is behind: the engine pauses rather than pile up. May be empty.
  std::function<bool()> receiver_full;
};

struct EngineOptions {
  DraftOptions drafts;
  CacheOptions cache;
  StepLimit step_limit;
  std::vector<std::string> degraded;  // told in each pulse, a sentence each
};

// Owns all sessions and runs them on one thread: takes requests and cancellations, chooses the rows
// of a step, computes, samples, tells. Used in-process and behind the wire alike.
//
// commands, pulse() and n_failed_steps() may come from any thread; prepare, run and step belong to
// the engine's.
class Engine {
 public:
  // instance is opened and not loaded; all outlive the engine. The clock is that of timings.
  Engine(model::Instance& instance, const text::Tokenizer& tokenizer, EngineHooks hooks,
         const EngineOptions& options = {}, const Clock& clock = steady_clock());
  ~Engine();

  // Loads the weights, runs one step as a rehearsal and seals the ledger.
  void prepare(const std::function<void(Bytes, Bytes)>& progress);
  wire::Ready ready() const;

  // For measuring at a long context, before the first request: the first n_tokens of each prompt
  // (all but one of a shorter one) are not computed, their state is made up of this seed
  // (model::seed_context). They are reported as cached.
  void make_up_contexts(int64_t n_tokens, uint64_t seed);

  void command(wire::RequestId id, wire::Command&& command);

  // Until a Shutdown: waits for commands and steps. A step that fails is run again; one that fails
  // twice ends the requests that were in it, with the second failure.
  // Errors: kDeviceLost with what the device said; then the engine is of no use any more. What is
  // thrown beside the computing of a step (std::bad_alloc).
  void run();
  // One step, if there is something to do. Errors: as run.
  bool step();

  // For tests, between steps.
  std::span<const std::unique_ptr<Request>> running() const { return running_; }

  wire::Pulse pulse() const;
  uint64_t n_failed_steps() const { return n_failed_steps_; }

 private:
  using Incoming = std::pair<wire::RequestId, wire::Command>;

  void take_commands();
  void take(wire::RequestId id, wire::Command&& command);
  void drop_cancelled();
  void admit();
  bool admit(Request& request);
  void start(Request& request);
  void resume_kept(Request& request);
  void keep(const Request& request);
  void keep_prompts(const StepPlan& plan);
  void write_states();
  bool has_commands();
  StepPlan plan_rows() const;
  void compute(const StepPlan& plan);
  StepResult run_twice(const StepPlan& plan);
  void fail_all(const StepPlan& plan, ErrorCode code, const std::string& why);
  void accept(const StepPlan& parts, const StepResult& result);
  void flush() { answers_.flush(hooks_.emit); }
  void rehearse();
  void measure_windows();
  int64_t now_ns() const;

  model::Instance& instance_;
  const text::Tokenizer& tokenizer_;
  EngineHooks hooks_;
  EngineOptions options_;
  const Clock& clock_;
  Answers answers_;
  Sampler sampler_;
  StepRunner runner_;
  Forms forms_;
  Drafter drafter_;
  PromptPace pace_;
  PrefixCache cache_;
  std::mt19937_64 seeds_;
  int64_t made_up_tokens_ = 0;
  uint64_t made_up_seed_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Incoming> incoming_;  // guarded by mutex_
  wire::Drafts drafts_;             // guarded by mutex_, as the next: for pulse()
  wire::ExpertReads experts_;
  bool stopping_ = false;  // the engine thread's

  std::deque<std::unique_ptr<Request>> waiting_;
  std::vector<std::unique_ptr<Request>> running_;  // by admission

  // For pulse().
  std::atomic<int64_t> step_since_ns_{0};
  std::atomic<int32_t> step_rows_{0}, n_running_{0}, n_waiting_{0};
  std::atomic<int32_t> n_kept_{0};
  std::atomic<uint64_t> n_prompt_tokens_{0}, n_cached_tokens_{0}, n_steps_{0}, n_failed_steps_{0};
};

}  // namespace strata::engine
