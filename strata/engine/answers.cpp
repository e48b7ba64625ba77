#include "strata/engine/answers.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "strata/base/format.h"

namespace strata::engine {
namespace {

double ms_between(Clock::TimePoint from, Clock::TimePoint to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

bool stops_at(const Request& request, int32_t id) {
  return std::ranges::find(request.submit.stop_ids, id) != request.submit.stop_ids.end();
}

// Whether an answer of n tokens has all it may have; admission has seen to the context.
bool is_full(const Request& request, size_t n) {
  return n >= static_cast<size_t>(request.submit.max_tokens);
}

}  // namespace

void Answers::say(const Request& request, wire::Event&& event) {
  wire::Addressed& addressed = events_.emplace_back();
  addressed.request = request.id;
  addressed.event = std::move(event);
}

void Answers::end(Request& request, wire::Event&& event) {
  say(request, std::move(event));
  request.ended = true;
}

void Answers::progress(const Request& request) {
  if (!request.submit.sent.empty()) return;  // it has been read before
  wire::Progress progress;
  progress.done = static_cast<int32_t>(request.n_read);
  progress.cached = static_cast<int32_t>(request.n_cached);
  progress.total = static_cast<int32_t>(request.submit.ids.size());
  say(request, progress);
}

// What the stop matcher is to see of a token.
std::string Answers::bytes_of(const Request& request, int32_t id) const {
  const bool silent =
      stops_at(request, id) || !tokenizer_.contains(id) || tokenizer_.is_control(id);
  return silent ? std::string() : std::string(tokenizer_.piece(id));
}

int Answers::n_accepted(const Request& request, std::span<const int32_t> ids) const {
  // Without stop strings a matcher never matches, and need not be copied.
  StopMatcher matcher = request.submit.stops.empty() ? StopMatcher({}) : request.matcher;
  Guide guide = request.guide;
  for (size_t i = 0; i < ids.size(); ++i) {
    const int32_t id = ids[i];
    if (id < 0 || stops_at(request, id) || is_full(request, request.answer.size() + i + 1)) {
      return static_cast<int>(i + 1);
    }
    if (!guide.push(id) || guide.is_over()) return static_cast<int>(i + 1);
    if (request.submit.stops.empty()) continue;
    matcher.push(bytes_of(request, id));
    if (matcher.matched()) return static_cast<int>(i + 1);
  }
  return static_cast<int>(ids.size());
}

void Answers::accept(Request& request, int32_t id, const wire::TokenLogprobs& logprobs) {
  if (!request.first_token) request.first_token = clock_.now();
  if (id < 0) {
    // Broken logits are the engine's fault, also under a grammar.
    if (std::string why = request.guide.why_none(); !why.empty())
      return fail(request, ErrorCode::kUnsupported, std::move(why));
    fail(request, ErrorCode::kInternal,
         format("no logit of token {} is finite; the weights or the state are broken",
                request.submit.ids.size() + request.answer.size()));
    return;
  }
  ++n_tokens_;
  wire::Tokens tokens{.ids = {id}};
  tokens.bytes = take(request, id);
  if (request.submit.n_top_logprobs >= 0) tokens.logprobs = {logprobs};
  say(request, std::move(tokens));
  finish_if_over(request);
}

void Answers::replay(Request& request) {
  for (const int32_t id : request.submit.sent) {
    take(request, id);  // the bytes have been sent, too
    finish_if_over(request);
    if (request.ended) return;
  }
}

// The next token of the answer, and the bytes that it lets go.
std::string Answers::take(Request& request, int32_t id) {
  request.answer.push_back(id);
  request.penalties.push(id);
  return request.matcher.push(bytes_of(request, id));
}

void Answers::finish_if_over(Request& request) {
  if (stops_at(request, request.answer.back())) return finish(request, wire::Reason::kStop);
  if (request.matcher.matched()) return finish(request, wire::Reason::kStopString);
  if (!request.guide.push(request.answer.back())) {
    return fail(request, ErrorCode::kUnsupported,
                "the answer has become deeper or more ambiguous than its grammar is followed");
  }
  if (request.guide.is_over()) return finish(request, wire::Reason::kStop);
  if (is_full(request, request.answer.size())) finish(request, wire::Reason::kLength);
}

void Answers::finish(Request& request, wire::Reason reason) {
  if (request.ended) return;
  if (!request.matcher.matched() && reason != wire::Reason::kCancelled) {
    std::string rest = request.matcher.finish();
    if (!rest.empty()) {
      wire::Tokens tokens;
      tokens.bytes = std::move(rest);
      say(request, std::move(tokens));
    }
  }
  const Clock::TimePoint now = clock_.now();
  const Clock::TimePoint started = request.started.value_or(now);
  const Clock::TimePoint first = request.first_token.value_or(now);
  end(request,
      wire::Finished{.reason = reason,
                     .usage = {.prompt_tokens = static_cast<int32_t>(request.submit.ids.size()),
                               .completion_tokens = static_cast<int32_t>(request.answer.size()),
                               .cached_tokens = static_cast<int32_t>(request.n_cached),
                               .reasoning_tokens = request.guide.n_reasoning()},
                     .timings = {.queue_ms = ms_between(request.arrived, started),
                                 .prompt_ms = ms_between(started, first),
                                 .decode_ms = ms_between(first, now),
                                 .draft_ms = request.draft_ms},
                     .drafts = request.drafts,
                     .stop = request.matcher.stop()});
}

void Answers::fail(Request& request, ErrorCode code, std::string message) {
  if (request.ended) return;
  request.failed = true;
  end(request, wire::Failed{.code = code, .message = std::move(message)});
}

void Answers::flush(const std::function<void(std::span<const wire::Addressed>)>& emit) {
  if (events_.empty()) return;
  if (emit) emit(events_);
  events_.clear();
}

}  // namespace strata::engine
