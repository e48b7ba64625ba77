#include "strata/server/api/messages_shape.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "strata/server/api/messages.h"
#include "strata/server/json.h"
#include "strata/server/sse.h"

namespace strata::server {
namespace {

using Kind = AnswerPart::Kind;

const char* stop_reason(Finish finish) {
  switch (finish) {
    case Finish::kLength:
      return "max_tokens";
    case Finish::kStopString:
      return "stop_sequence";
    case Finish::kToolCalls:
      return "tool_use";
    case Finish::kStop:
      break;
  }
  return "end_turn";
}

Json usage(const wire::Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens - usage.cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.cached_tokens},
          {"output_tokens", usage.completion_tokens}};
}

Json stop_sequence(const Answer& answer) {
  return answer.finish == Finish::kStopString ? Json(answer.stop) : Json(nullptr);
}

class MessagesShape final : public AnswerShape {
 public:
  MessagesShape(const std::string& request_id, std::string model)
      : request_id_(request_id), model_(std::move(model)) {}

  std::string begin(int32_t n_prompt) override {
    Json message = head(nullptr, nullptr);
    message["usage"] = usage({n_prompt, 0, 0});
    return event("message_start", {{"message", std::move(message)}});
  }

  std::string parts(int, const AnswerParts& parts, const Logprobs&) override {
    std::string events;
    for (const AnswerPart& part : parts) {
      const Kind block = part.kind == Kind::kArguments ? Kind::kCall : part.kind;
      if (part.kind == Kind::kCall || block != open_) {
        events += close();
        events += open(block, part);
      }
      if (part.kind != Kind::kCall)
        events += event("content_block_delta", {{"index", n_blocks_ - 1}, {"delta", delta(part)}});
    }
    return events;
  }

  std::string finished(int, const Answer& answer, const Totals& totals) override {
    return close() + event("message_delta", {{"delta",
                                              {{"stop_reason", stop_reason(answer.finish)},
                                               {"stop_sequence", stop_sequence(answer)}}},
                                             {"usage", usage(totals.usage)}});
  }
  std::string end(const std::vector<Answer>&, const Totals&) override {
    return event("message_stop", Json::object());
  }
  std::string failed(const Response& error) override {
    return "event: error\n" + sse_event(anthropic_error(error, request_id_).body);
  }
  Response refused(Response error) const override {
    return anthropic_error(std::move(error), request_id_);
  }
  std::string filler() const override { return event("ping", Json::object()); }

  std::string whole(const std::vector<Answer>& answers, const Totals& totals) override {
    const Answer& answer = answers.front();
    Json message = head(stop_reason(answer.finish), stop_sequence(answer));
    Json& content = message["content"];
    size_t n_calls = 0;
    for (const AnswerPart& part : answer.parts) {
      if (part.kind == Kind::kArguments)
        content.back()["input"] = Json::parse(part.text, nullptr, false);
      else
        content.push_back(block(part, n_calls, true));
    }
    message["usage"] = usage(totals.usage);
    return dump(message);
  }

 private:
  static std::string event(const char* type, Json members) {
    Json body = {{"type", type}};
    body.update(members);
    return std::string("event: ") + type + "\n" + sse_event(dump(body));
  }

  Json head(Json reason, Json sequence) const {
    return {{"id", "msg_" + request_id_},
            {"type", "message"},
            {"role", "assistant"},
            {"model", model_},
            {"content", Json::array()},
            {"stop_reason", std::move(reason)},
            {"stop_sequence", std::move(sequence)}};
  }

  Json block(const AnswerPart& part, size_t& n_calls, bool whole) const {
    const std::string text = whole ? part.text : "";
    if (part.kind == Kind::kReasoning)
      return {{"type", "thinking"}, {"thinking", text}, {"signature", ""}};
    if (part.kind == Kind::kContent) return {{"type", "text"}, {"text", text}};
    return {{"type", "tool_use"},
            {"id", call_id(request_id_, 0, n_calls++)},
            {"name", part.text},
            {"input", Json::object()}};
  }

  std::string open(Kind kind, const AnswerPart& part) {
    open_ = kind;
    return event("content_block_start",
                 {{"index", n_blocks_++}, {"content_block", block(part, n_calls_, false)}});
  }

  static Json delta(const AnswerPart& part) {
    if (part.kind == Kind::kReasoning) return {{"type", "thinking_delta"}, {"thinking", part.text}};
    if (part.kind == Kind::kContent) return {{"type", "text_delta"}, {"text", part.text}};
    return {{"type", "input_json_delta"}, {"partial_json", part.text}};
  }

  std::string close() {
    if (!open_) return "";
    std::string events;
    if (*open_ == Kind::kReasoning)
      events = event(
          "content_block_delta",
          {{"index", n_blocks_ - 1}, {"delta", {{"type", "signature_delta"}, {"signature", ""}}}});
    open_.reset();
    return events + event("content_block_stop", {{"index", n_blocks_ - 1}});
  }

  const std::string request_id_, model_;
  std::optional<Kind> open_;
  int n_blocks_ = 0;
  size_t n_calls_ = 0;
};

}  // namespace

std::unique_ptr<AnswerShape> messages_shape(const std::string& request_id, std::string model) {
  return std::make_unique<MessagesShape>(request_id, std::move(model));
}

}  // namespace strata::server
