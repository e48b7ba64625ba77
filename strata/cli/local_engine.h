#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strata/cli/model_setup.h"
#include "strata/engine/engine.h"

namespace strata::cli {

// An engine inside this process, run by the caller's thread: what run and bench use.
class LocalEngine {
 public:
  // Opens the model, says what was chosen, reads the weights. Errors: those of model::Instance and
  // Engine::prepare.
  explicit LocalEngine(const Invocation& invocation);

  struct Answer {
    wire::Reason reason = wire::Reason::kStop;
    wire::Usage usage;
    wire::Timings timings;
    wire::Drafts drafts;
  };
  // Runs a request to its end. on_bytes gets the bytes of the answer as they come; cancelled is
  // asked between steps, both may be empty. Errors: what the engine fails it with.
  Answer ask(wire::Submit submit, const std::function<void(std::string_view)>& on_bytes,
             const std::function<bool()>& cancelled);

  // See Engine::make_up_contexts.
  void make_up_contexts(int64_t n_tokens, uint64_t seed) {
    engine_->make_up_contexts(n_tokens, seed);
  }

  // Between requests.
  model::Instance& instance() { return instance_; }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }
  wire::Limits limits() const { return engine_->ready().limits; }

 private:
  void take(const wire::Addressed& addressed);

  model::Instance instance_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::unique_ptr<engine::Engine> engine_;
  wire::RequestId last_request_ = wire::kNoRequest;

  // Of the request that runs.
  const std::function<void(std::string_view)>* on_bytes_ = nullptr;
  std::optional<wire::Finished> finished_;
  std::optional<wire::Failed> failed_;
};

}  // namespace strata::cli
