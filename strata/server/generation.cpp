#include "strata/server/generation.h"

#include <algorithm>
#include <new>
#include <utility>
#include <variant>

#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/server/error_reply.h"
#include "strata/server/sse.h"
#include "strata/text/utf8_stream.h"

namespace strata::server {
namespace {

std::string_view finish_reason(wire::Reason reason) {
  return reason == wire::Reason::kLength ? "length" : "stop";
}

// One answer under way. Owners: the engine's callbacks until the terminal event, and the exchange
// until it is over. Everything runs on the transport's thread.
class Running : public std::enable_shared_from_this<Running> {
 public:
  Running(std::shared_ptr<Exchange> exchange, const Services& services, Generation generation)
      : exchange_(std::move(exchange)),
        services_(services),
        generation_(std::move(generation)),
        reasoning_(generation_.in_reasoning) {}

  void start() {
    if (exchange_->gone()) return;
    if (generation_.stream)
      exchange_->begin_stream({sse_headers(), sse_comment("working"), services_.config.keepalive});
    const auto self = shared_from_this();
    exchange_->on_gone([self](Gone why) { self->on_gone(why); });
    supervise::EngineClient::Callbacks callbacks;
    callbacks.on_event = [self](wire::Event&& event) {
      self->exchange_->post([self, shared = std::make_shared<wire::Event>(std::move(event))] {
        self->guarded([&] { self->on_event(*shared); });
      });
    };
    if (!generation_.stream)
      callbacks.on_restart = [self] { self->exchange_->post([self] { self->begin_again(); }); };
    guarded([&] {
      request_ = services_.engine.submit(std::move(generation_.submit), std::move(callbacks));
    });
  }

 private:
  // What goes wrong on the way to the client ends this answer, there and in the engine.
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
    services_.engine.cancel(request_);
    if (!over_) fail(Error(ErrorCode::kInternal, "internal error"));
  }

  void begin_again() {
    utf8_ = text::Utf8Stream();
    reasoning_ = text::ReasoningSplit(generation_.in_reasoning);
    whole_ = {};
  }

  void on_gone(Gone why) {
    services_.engine.cancel(request_);
    if (why == Gone::kShutdown && !over_)
      fail(Error(ErrorCode::kResourceExhausted, "the server is shutting down"));
    over_ = true;
  }

  void on_event(wire::Event& event) {
    if (over_) return;
    if (const auto* tokens = std::get_if<wire::Tokens>(&event)) {
      add(utf8_.append(tokens->bytes));
    } else if (const auto* end = std::get_if<wire::Finished>(&event)) {
      finish(*end);
    } else if (const auto* failed = std::get_if<wire::Failed>(&event)) {
      fail(Error(failed->code, failed->message));
    }
  }

  void add(const std::string& text) {
    text::ReasoningSplit::Part part;
    if (generation_.split_reasoning)
      part = reasoning_.append(text);
    else
      part.content = text;
    deliver(part);
  }

  void deliver(const text::ReasoningSplit::Part& part) {
    if (part.content.empty() && part.reasoning.empty()) return;
    if (generation_.stream) {
      open();
      exchange_->write(sse_event(generation_.shape->piece(part)));
    } else {
      whole_.content += part.content;
      whole_.reasoning += part.reasoning;
    }
  }

  void open() {
    if (std::exchange(opened_, true)) return;
    const std::string opening = generation_.shape->opening();
    if (!opening.empty()) exchange_->write(sse_event(opening));
  }

  void finish(const wire::Finished& end) {
    services_.metrics.finished(end);
    add(utf8_.finish());
    if (generation_.split_reasoning) deliver(reasoning_.finish());
    exchange_->note(
        format("prompt={} cached={} completion={} queue_ms={:.0f} prompt_ms={:.0f} "
               "decode_ms={:.0f} {}",
               end.usage.prompt_tokens, end.usage.cached_tokens, end.usage.completion_tokens,
               end.timings.queue_ms, end.timings.prompt_ms, end.timings.decode_ms,
               finish_reason(end.reason)));
    over_ = true;
    if (generation_.stream) {
      open();
      exchange_->write(sse_event(generation_.shape->closing(finish_reason(end.reason))));
      if (generation_.include_usage) exchange_->write(sse_event(generation_.shape->usage(end)));
      exchange_->write(sse_event("[DONE]"));
      exchange_->end_stream();
    } else {
      whole_.finish_reason = finish_reason(end.reason);
      whole_.end = end;
      exchange_->reply(
          {200, {{"Content-Type", "application/json"}}, generation_.shape->whole(whole_)});
    }
  }

  void fail(const Error& error) {
    over_ = true;
    services_.metrics.failed();
    const Response response =
        error_response(error, exchange_->request().id, services_.config.private_folders);
    exchange_->note(format("error: {}", error.what()));
    if (!exchange_->stream_started()) return exchange_->reply(response);
    exchange_->write(sse_event(response.body));
    exchange_->write(sse_event("[DONE]"));
    exchange_->end_stream();
  }

  const std::shared_ptr<Exchange> exchange_;
  const Services& services_;
  Generation generation_;
  text::Utf8Stream utf8_;
  text::ReasoningSplit reasoning_;
  AnswerShape::Whole whole_;
  wire::RequestId request_ = wire::kNoRequest;
  bool opened_ = false;
  bool over_ = false;
};

}  // namespace

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
  result.stream = fields.stream;
  result.include_usage = fields.include_usage;
  result.shape = std::move(shape);
  return result;
}

void start_generation(const std::shared_ptr<Exchange>& exchange, const Services& services,
                      Generation generation) {
  std::make_shared<Running>(exchange, services, std::move(generation))->start();
}

}  // namespace strata::server
