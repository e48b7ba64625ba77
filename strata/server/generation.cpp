#include "strata/server/generation.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <numeric>
#include <span>
#include <utility>
#include <variant>

#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/server/error_reply.h"
#include "strata/server/sse.h"
#include "strata/text/utf8_stream.h"

namespace strata::server {
namespace {

void add(wire::Drafts& all, const wire::Drafts& more) {
  all.passes += more.passes;
  all.guessed.resize(std::max(all.guessed.size(), more.guessed.size()));
  all.right.resize(all.guessed.size());
  for (size_t i = 0; i < more.guessed.size(); ++i) {
    all.guessed[i] += more.guessed[i];
    all.right[i] += more.right[i];
  }
}

// The answers to one request under way. Owners: the engine's callbacks until the terminal events,
// and the exchange until it is over. Everything runs on the transport's thread.
class Running : public std::enable_shared_from_this<Running> {
 public:
  Running(std::shared_ptr<Exchange> exchange, const Services& services, Generation generation)
      : exchange_(std::move(exchange)), services_(services), generation_(std::move(generation)) {
    for (int i = 0; i < generation_.n; ++i) choices_.emplace_back(generation_.format);
  }

  void start() {
    if (exchange_->gone()) return;
    const supervise::Status status = services_.engine.status();
    const int limit = status.limits.n_slots + services_.config.max_queue;
    if (status.n_requests + generation_.n > limit)
      return fail(
          RequestError(ErrorCode::kResourceExhausted,
                       format("{} answers run or wait already, {} are taken at the same time",
                              status.n_requests, limit),
                       "", "queue_full", 429));
    if (generation_.stream)
      exchange_->begin_stream(
          {sse_headers(), generation_.shape->filler(), services_.config.keepalive});
    const auto self = shared_from_this();
    exchange_->on_gone([self](Gone why) { self->on_gone(why); });
    guarded([&] {
      for (int i = 0; i < generation_.n && !over_; ++i) submit(i);
    });
  }

 private:
  struct Choice {
    explicit Choice(const AnswerFormat& format) : parser(format) {}
    text::Utf8Stream utf8;
    AnswerParser parser;
    Answer answer;
    Logprobs unsent;
    wire::RequestId request = wire::kNoRequest;
    std::optional<wire::Finished> end;
  };

  void submit(int i) {
    const auto self = shared_from_this();
    supervise::EngineClient::Callbacks callbacks;
    callbacks.on_event = [self, i](wire::Event&& event) {
      self->exchange_->post([self, i, shared = std::make_shared<wire::Event>(std::move(event))] {
        self->guarded([&] { self->on_event(i, *shared); });
      });
    };
    if (!generation_.stream)
      callbacks.on_restart = [self, i] {
        self->exchange_->post([self, i] { self->begin_again(i); });
      };
    wire::Submit copy = generation_.submit;
    // Any number that differs; the same request has the same answers again.
    if (copy.sampling.seed && i > 0)
      *copy.sampling.seed += static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u;
    const wire::RequestId id = services_.engine.submit(std::move(copy), std::move(callbacks));
    choice(i).request = id;
    services_.running[id] = {.id = exchange_->request().id,
                             .path = exchange_->request().path,
                             .prompt_tokens = n_prompt(),
                             .since = std::chrono::steady_clock::now()};
  }

  Choice& choice(int i) { return choices_[static_cast<size_t>(i)]; }

  // What goes wrong on the way to the client ends these answers, there and in the engine.
  template <class Work>
  void guarded(const Work& work) {
    std::string why;
    try {
      return work();
    } catch (const std::bad_alloc&) {
      why = "not enough memory";
    } catch (const std::exception& e) {
      why = e.what();
    }
    log_error(format("{} {}", exchange_->request().id, why));
    cancel();
    if (!over_) fail(Error(ErrorCode::kInternal, "internal error"));
  }

  void cancel() {
    for (const Choice& each : choices_)
      if (each.request != wire::kNoRequest) services_.engine.cancel(each.request);
  }

  void forget() {
    for (const Choice& each : choices_) services_.running.erase(each.request);
  }

  void begin_again(int i) {
    const wire::RequestId request = choice(i).request;
    choice(i) = Choice(generation_.format);
    choice(i).request = request;
  }

  void on_gone(Gone why) {
    cancel();
    forget();
    if (why == Gone::kShutdown && !over_)
      fail(Error(ErrorCode::kResourceExhausted, "the server is shutting down"));
    over_ = true;
  }

  void on_event(int i, wire::Event& event) {
    if (over_) return;
    RunningAnswer& row = services_.running[choice(i).request];
    if (auto* tokens = std::get_if<wire::Tokens>(&event)) {
      row.has_slot = true;
      row.answer_tokens += static_cast<int32_t>(tokens->ids.size());
      keep_logprobs(i, *tokens);
      deliver(i, choice(i).parser.append(choice(i).utf8.append(tokens->bytes)));
    } else if (const auto* progress = std::get_if<wire::Progress>(&event)) {
      row.has_slot = true;
      row.read_tokens = progress->done;
      row.cached_tokens = progress->cached;
    } else if (const auto* end = std::get_if<wire::Finished>(&event)) {
      services_.running.erase(choice(i).request);
      finish(i, *end);
    } else if (const auto* failed = std::get_if<wire::Failed>(&event)) {
      cancel();
      // The engine alone compiles grammars.
      const bool refused =
          failed->code == ErrorCode::kInvalidArgument || failed->code == ErrorCode::kUnsupported;
      if (refused && !generation_.submit.grammar.empty())
        fail(RequestError(failed->code, failed->message, generation_.grammar_path));
      else
        fail(Error(failed->code, failed->message));
    }
  }

  void keep_logprobs(int i, const wire::Tokens& tokens) {
    const auto bytes = [&](int32_t id) { return services_.frontend.decode(std::span(&id, 1)); };
    const std::vector<int32_t>& ends = generation_.submit.stop_ids;
    for (size_t t = 0; t < std::min(tokens.logprobs.size(), tokens.ids.size()); ++t) {
      if (std::ranges::find(ends, tokens.ids[t]) != ends.end()) continue;
      TokenLogprob& token = choice(i).unsent.emplace_back();
      token.bytes = bytes(tokens.ids[t]);
      token.logprob = tokens.logprobs[t].chosen;
      for (const wire::Logprob& each : tokens.logprobs[t].top)
        token.top.emplace_back(bytes(each.id), each.logprob);
    }
  }

  void deliver(int i, const AnswerParts& parts) {
    if (parts.empty()) return;
    Answer& answer = choice(i).answer;
    for (const AnswerPart& part : parts) {
      add_part(answer.parts, part.kind, part.text);
      switch (part.kind) {
        case AnswerPart::Kind::kReasoning:
          answer.reasoning += part.text;
          break;
        case AnswerPart::Kind::kContent:
          answer.content += part.text;
          break;
        case AnswerPart::Kind::kCall:
          answer.calls.push_back(
              {call_id(exchange_->request().id, i, answer.calls.size()), part.text, ""});
          break;
        case AnswerPart::Kind::kArguments:
          answer.calls.back().arguments += part.text;
          break;
      }
    }
    if (generation_.stream)
      write([&](AnswerShape& shape) { return shape.parts(i, parts, choice(i).unsent); });
    move_logprobs(i);
  }

  void move_logprobs(int i) {
    Logprobs& kept = choice(i).answer.logprobs;
    for (TokenLogprob& token : choice(i).unsent) kept.push_back(std::move(token));
    choice(i).unsent.clear();
  }

  // What a shape writes is made when the stream has begun: some number their events.
  template <class Make>
  void write(const Make& make) {
    if (!std::exchange(opened_, true)) exchange_->write(generation_.shape->begin(n_prompt()));
    exchange_->write(make(*generation_.shape));
  }

  int32_t n_prompt() const { return static_cast<int32_t>(generation_.submit.ids.size()); }

  void finish(int i, const wire::Finished& end) {
    services_.metrics.finished(end);
    AnswerParts parts = choice(i).parser.append(choice(i).utf8.finish());
    for (AnswerPart& part : choice(i).parser.finish())
      add_part(parts, part.kind, std::move(part.text));
    deliver(i, parts);
    Answer& answer = choice(i).answer;
    const bool by_length = end.reason == wire::Reason::kLength;
    answer.finish = by_length                                 ? Finish::kLength
                    : !answer.calls.empty()                   ? Finish::kToolCalls
                    : end.reason == wire::Reason::kStopString ? Finish::kStopString
                                                              : Finish::kStop;
    answer.stop = end.stop;
    choice(i).end = end;
    // What has come with no text of its own.
    if (generation_.stream && !choice(i).unsent.empty())
      write([&](AnswerShape& shape) { return shape.parts(i, {}, choice(i).unsent); });
    move_logprobs(i);
    if (generation_.stream)
      write([&](AnswerShape& shape) { return shape.finished(i, answer, totals()); });
    for (const Choice& each : choices_)
      if (!each.end) return;
    finish_all();
  }

  void finish_all() {
    over_ = true;
    std::vector<Answer> answers;
    for (Choice& each : choices_) answers.push_back(std::move(each.answer));
    const Totals all = totals();
    const auto sum = [](const std::vector<uint64_t>& counts) {
      return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
    };
    exchange_->note(
        format("prompt={} cached={} completion={} queue_ms={:.0f} prompt_ms={:.0f} "
               "decode_ms={:.0f} draft_ms={:.0f} passes={} guessed={} right={} {}",
               all.usage.prompt_tokens, all.usage.cached_tokens, all.usage.completion_tokens,
               all.timings.queue_ms, all.timings.prompt_ms, all.timings.decode_ms,
               all.timings.draft_ms, all.drafts.passes, sum(all.drafts.guessed),
               sum(all.drafts.right), name(answers.front().finish)));
    if (generation_.stream) {
      write([&](AnswerShape& shape) { return shape.end(answers, all); });
      exchange_->end_stream();
    } else {
      exchange_->reply(
          {200, {{"Content-Type", "application/json"}}, generation_.shape->whole(answers, all)});
    }
  }

  // The prompt counts once. Of the times those of the answer that took longest.
  Totals totals() const {
    Totals all;
    for (const Choice& each : choices_) {
      if (!each.end) continue;
      const wire::Finished& end = *each.end;
      all.usage.prompt_tokens = end.usage.prompt_tokens;
      all.usage.cached_tokens = std::max(all.usage.cached_tokens, end.usage.cached_tokens);
      all.usage.completion_tokens += end.usage.completion_tokens;
      all.usage.reasoning_tokens += end.usage.reasoning_tokens;
      add(all.drafts, end.drafts);
      const auto time = [](const wire::Timings& t) {
        return t.queue_ms + t.prompt_ms + t.decode_ms;
      };
      if (time(end.timings) > time(all.timings)) all.timings = end.timings;
    }
    return all;
  }

  void fail(const Error& error) {
    over_ = true;
    forget();
    services_.metrics.failed();
    const Response response =
        error_response(error, exchange_->request().id, services_.config.private_folders);
    exchange_->note(format("error: {}", error.what()));
    if (!exchange_->stream_started()) return exchange_->reply(generation_.shape->refused(response));
    exchange_->write(generation_.shape->failed(response));
    exchange_->end_stream();
  }

  const std::shared_ptr<Exchange> exchange_;
  const Services& services_;
  Generation generation_;
  std::vector<Choice> choices_;
  bool opened_ = false;
  bool over_ = false;
};

}  // namespace

const char* name(Finish finish) {
  switch (finish) {
    case Finish::kLength:
      return "length";
    case Finish::kToolCalls:
      return "tool_calls";
    case Finish::kStop:
    case Finish::kStopString:
      break;
  }
  return "stop";
}

std::string call_id(const std::string& request_id, int choice, size_t index) {
  return format("call_{}_{}_{}", request_id, choice, index);
}

int32_t answer_tokens(int64_t n_prompt, std::optional<int32_t> asked,
                      const supervise::Status& status, bool at_least) {
  const wire::Limits& limits = status.limits;
  if (limits.n_context == 0) {
    if (status.state == supervise::State::kFailed)
      throw RequestError(
          ErrorCode::kResourceExhausted,
          format("the engine has failed: {}", status.reasons.empty() ? "" : status.reasons.front()),
          "", "engine_failed");
    throw RequestError(ErrorCode::kResourceExhausted,
                       format("the model is still being loaded ({})", status.pulse.phase), "",
                       "model_loading");
  }
  const int64_t available =
      n_prompt > limits.max_prompt_tokens ? 0 : std::max<int64_t>(limits.n_context - n_prompt, 0);
  const int64_t wanted = asked.value_or(1);
  if (wanted > available)
    throw RequestError(
        ErrorCode::kInvalidArgument,
        format("the prompt has {}{} tokens, {} are asked for the answer, {} are available for it "
               "in a context of {}",
               at_least ? "at least " : "", n_prompt, wanted, available, limits.n_context),
        "", "context_length_exceeded");
  return static_cast<int32_t>(asked.value_or(static_cast<int32_t>(available)));
}

void refuse_too_long(size_t n_bytes, std::optional<int32_t> asked, const Services& services) {
  const size_t longest = std::max<size_t>(services.frontend.longest_token_bytes(), 1);
  const auto at_least = static_cast<int64_t>((n_bytes + longest - 1) / longest);
  const supervise::Status status = services.engine.status();
  // If the prompt alone may fit, its own number of tokens is worth counting.
  if (status.limits.n_context > 0 && at_least <= status.limits.max_prompt_tokens) return;
  answer_tokens(at_least, asked, status, true);
}

Generation make_generation(std::vector<int32_t> prompt, GenerationFields&& fields,
                           std::unique_ptr<AnswerShape> shape, const Services& services) {
  Generation result;
  result.submit.max_tokens = answer_tokens(static_cast<int64_t>(prompt.size()), fields.max_tokens,
                                           services.engine.status());
  result.submit.ids = std::move(prompt);
  result.submit.sampling = std::move(fields.sampling);
  result.submit.stops = std::move(fields.stops);
  const auto stop_ids = services.frontend.stop_ids();
  result.submit.stop_ids.assign(stop_ids.begin(), stop_ids.end());
  result.submit.n_top_logprobs = fields.n_top_logprobs;
  result.stream = fields.stream;
  result.n = fields.n;
  result.shape = std::move(shape);
  return result;
}

void start_generation(const std::shared_ptr<Exchange>& exchange, const Services& services,
                      Generation generation) {
  std::make_shared<Running>(exchange, services, std::move(generation))->start();
}

}  // namespace strata::server
