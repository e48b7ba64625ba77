#include "strata/server/api/responses_shape.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "strata/base/format.h"
#include "strata/server/sse.h"
#include "strata/server/usage_json.h"

namespace strata::server {
namespace {

using Kind = AnswerPart::Kind;

Json usage_of(const wire::Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"output_tokens", usage.completion_tokens},
          {"output_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

class ResponsesShape final : public AnswerShape {
 public:
  ResponsesShape(const std::string& request_id, std::string model, const Json& echo)
      : request_id_(request_id), model_(std::move(model)), created_(unix_time()), echo_(echo) {}

  std::string begin(int32_t) override {
    const Json response = response_json("in_progress", Json::array(), nullptr, nullptr);
    // One by one: they are numbered.
    std::string events = event("response.created", {{"response", response}});
    events += event("response.in_progress", {{"response", response}});
    return events;
  }

  std::string parts(int, const AnswerParts& parts, const Logprobs&) override {
    std::string events;
    for (const AnswerPart& part : parts) {
      const Kind kind = part.kind == Kind::kArguments ? Kind::kCall : part.kind;
      if (part.kind == Kind::kCall || !open_ || kind != *open_) {
        events += close("completed");
        events += open(kind, part);
      }
      if (part.kind == Kind::kCall) continue;
      text_ += part.text;
      Json members = place();
      if (kind != Kind::kCall) members["content_index"] = 0;
      members["delta"] = part.text;
      if (kind == Kind::kContent) members["logprobs"] = Json::array();
      events += event(format("response.{}.delta", text_name(kind)).c_str(), std::move(members));
    }
    return events;
  }

  std::string finished(int, const Answer& answer, const Totals&) override {
    return close(answer.finish == Finish::kLength ? "incomplete" : "completed");
  }
  std::string end(const std::vector<Answer>& answers, const Totals& totals) override {
    const bool cut = answers.front().finish == Finish::kLength;
    return event(cut ? "response.incomplete" : "response.completed",
                 {{"response", final(answers.front(), totals)}});
  }
  std::string failed(const Response& error) override {
    const Json body = Json::parse(error.body, nullptr, false);
    const Json why = {{"code", error.status == 429 ? "rate_limit_exceeded" : "server_error"},
                      {"message", body["error"].value("message", "")}};
    return event("response.failed", {{"response", response_json("failed", items_, why, nullptr)}});
  }
  std::string whole(const std::vector<Answer>& answers, const Totals& totals) override {
    return dump(final(answers.front(), totals));
  }

 private:
  std::string event(const char* type, Json members) {
    Json body = {{"type", type}, {"sequence_number", sequence_++}};
    body.update(members);
    return std::string("event: ") + type + "\n" + sse_event(dump(body));
  }

  static const char* text_name(Kind kind) {
    return kind == Kind::kReasoning ? "reasoning_text"
           : kind == Kind::kContent ? "output_text"
                                    : "function_call_arguments";
  }

  Json place() const { return {{"item_id", item_["id"]}, {"output_index", items_.size()}}; }

  static Json text_part(Kind kind, const std::string& text) {
    if (kind == Kind::kReasoning) return {{"type", "reasoning_text"}, {"text", text}};
    return {{"type", "output_text"},
            {"text", text},
            {"annotations", Json::array()},
            {"logprobs", Json::array()}};
  }

  Json new_item(Kind kind, const std::string& name, size_t index, size_t& n_calls) const {
    const std::string id = format("{}_{}", request_id_, index);
    switch (kind) {
      case Kind::kReasoning:
        return {{"id", "rs_" + id},
                {"type", "reasoning"},
                {"summary", Json::array()},
                {"content", Json::array()},
                {"status", "in_progress"}};
      case Kind::kContent:
        return {{"id", "msg_" + id},
                {"type", "message"},
                {"role", "assistant"},
                {"content", Json::array()},
                {"status", "in_progress"}};
      default:
        return {{"id", "fc_" + id},
                {"type", "function_call"},
                {"call_id", call_id(request_id_, 0, n_calls++)},
                {"name", name},
                {"arguments", ""},
                {"status", "in_progress"}};
    }
  }

  std::string open(Kind kind, const AnswerPart& part) {
    open_ = kind;
    text_.clear();
    item_ = new_item(kind, part.text, items_.size(), n_calls_);
    std::string events =
        event("response.output_item.added", {{"output_index", items_.size()}, {"item", item_}});
    if (kind == Kind::kCall) return events;
    Json members = place();
    members["content_index"] = 0;
    members["part"] = text_part(kind, "");
    return events + event("response.content_part.added", std::move(members));
  }

  static void fill(Json& item, Kind kind, const std::string& text, const char* status) {
    item["status"] = status;
    if (kind == Kind::kCall)
      item["arguments"] = text;
    else
      item["content"] = Json::array({text_part(kind, text)});
  }

  std::string close(const char* status) {
    if (!open_) return "";
    const Kind kind = *open_;
    open_.reset();
    fill(item_, kind, text_, status);
    Json members = place();
    if (kind == Kind::kCall) {
      members["name"] = item_["name"];
      members["arguments"] = text_;
    } else {
      members["content_index"] = 0;
      members["text"] = text_;
      if (kind == Kind::kContent) members["logprobs"] = Json::array();
    }
    std::string events =
        event(format("response.{}.done", text_name(kind)).c_str(), std::move(members));
    if (kind != Kind::kCall) {
      members = place();
      members["content_index"] = 0;
      members["part"] = text_part(kind, text_);
      events += event("response.content_part.done", std::move(members));
    }
    events +=
        event("response.output_item.done", {{"output_index", items_.size()}, {"item", item_}});
    items_.push_back(item_);
    return events;
  }

  Json final(const Answer& answer, const Totals& totals) const {
    const bool cut = answer.finish == Finish::kLength;
    Json items = Json::array();
    size_t n_calls = 0;
    for (size_t i = 0; i < answer.parts.size(); ++i) {
      const AnswerPart& part = answer.parts[i];
      Json item = new_item(part.kind, part.text, items.size(), n_calls);
      const bool is_call = part.kind == Kind::kCall;
      // Its arguments are the next part.
      if (is_call) ++i;
      const bool last = i + 1 >= answer.parts.size();
      const std::string text = i < answer.parts.size() ? answer.parts[i].text : "";
      fill(item, part.kind, text, cut && last ? "incomplete" : "completed");
      items.push_back(std::move(item));
    }
    return response_json(cut ? "incomplete" : "completed", std::move(items), nullptr,
                         usage_of(totals.usage));
  }

  Json response_json(const char* status, Json items, Json error, Json usage) const {
    const bool cut = std::string_view(status) == "incomplete";
    Json body = {
        {"id", "resp_" + request_id_},
        {"object", "response"},
        {"created_at", created_},
        {"status", status},
        {"error", std::move(error)},
        {"incomplete_details", cut ? Json{{"reason", "max_output_tokens"}} : Json(nullptr)},
        {"instructions", nullptr},
        {"max_output_tokens", nullptr},
        {"model", model_},
        {"output", std::move(items)},
        {"parallel_tool_calls", true},
        {"previous_response_id", nullptr},
        {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
        {"store", false},
        {"temperature", nullptr},
        {"text", {{"format", {{"type", "text"}}}}},
        {"tool_choice", "auto"},
        {"tools", Json::array()},
        {"top_p", nullptr},
        {"truncation", "disabled"},
        {"usage", std::move(usage)},
        {"user", nullptr},
        {"metadata", Json::object()}};
    for (const auto& [name, value] : echo_.items()) body[name] = value;
    return body;
  }

  const std::string request_id_, model_;
  const int64_t created_;
  const Json echo_;
  int sequence_ = 0;
  Json items_ = Json::array();  // those that have ended
  std::optional<Kind> open_;    // the kind of item_
  Json item_;
  std::string text_;
  size_t n_calls_ = 0;
};

}  // namespace

std::unique_ptr<AnswerShape> responses_shape(const std::string& request_id, std::string model,
                                             const Json& echo) {
  return std::make_unique<ResponsesShape>(request_id, std::move(model), echo);
}

}  // namespace strata::server
