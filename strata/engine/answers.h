#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "strata/base/clock.h"
#include "strata/engine/request.h"
#include "strata/text/tokenizer.h"
#include "strata/wire/messages.h"

namespace strata::engine {

// What the requests of an engine are told: gathers the events of a step and keeps the rule that a
// request ends exactly once. The engine's thread, but for n_tokens().
class Answers {
 public:
  // Both outlive this. The clock is that of timings.
  Answers(const text::Tokenizer& tokenizer, const Clock& clock)
      : tokenizer_(tokenizer), clock_(clock) {}

  // How far the prompt is read.
  void progress(const Request& request);
  // The next token of the answer, with its logprobs if the request asks for them; ends it where it
  // has to end. An id below 0: no token may come, or no logit was
  // finite, and the request fails.
  void accept(Request& request, int32_t id, const wire::TokenLogprobs& logprobs);
  // The tokens that were sent already; ends the answer if they end it. Before the first accept.
  void replay(Request& request);
  // How many of these the answer takes, if they are its next tokens: all, or up to the one that
  // ends it. Changes nothing.
  int n_accepted(const Request& request, std::span<const int32_t> ids) const;

  // Nothing if it has ended.
  void finish(Request& request, wire::Reason reason);
  void fail(Request& request, ErrorCode code, std::string message);

  // Hands the events over, if there are any.
  void flush(const std::function<void(std::span<const wire::Addressed>)>& emit);

  // Sampled so far. Any thread.
  uint64_t n_tokens() const { return n_tokens_; }

 private:
  void say(const Request& request, wire::Event&& event);
  void end(Request& request, wire::Event&& event);
  std::string take(Request& request, int32_t id);
  void finish_if_over(Request& request);
  std::string bytes_of(const Request& request, int32_t id) const;

  const text::Tokenizer& tokenizer_;
  const Clock& clock_;
  std::vector<wire::Addressed> events_;
  std::atomic<uint64_t> n_tokens_{0};
};

}  // namespace strata::engine
