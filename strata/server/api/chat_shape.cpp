#include "strata/server/api/chat_shape.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "strata/base/format.h"
#include "strata/server/json.h"
#include "strata/server/sse.h"
#include "strata/server/usage_json.h"

namespace strata::server {
namespace {

// What a probability of 0 becomes, which JSON cannot say otherwise.
double finite(float logprob) { return std::max(static_cast<double>(logprob), -9999.0); }

Json token_json(const std::string& bytes, float logprob) {
  Json list = Json::array();
  for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
  return {{"token", bytes}, {"logprob", finite(logprob)}, {"bytes", std::move(list)}};
}

// What both kinds of answers have: their head and how a stream ends.
class OpenAiShape : public AnswerShape {
 public:
  std::string end(const std::vector<Answer>&, const Totals& totals) override {
    std::string events;
    if (style_.include_usage) {
      Json body = head(event_object_);
      body["choices"] = Json::array();
      add_end(body, totals);
      events = sse_event(dump(body));
    }
    return events + sse_event("[DONE]");
  }
  std::string failed(const Response& error) override {
    return sse_event(error.body) + sse_event("[DONE]");
  }

 protected:
  // event_object: what an event of a stream calls itself.
  OpenAiShape(OpenAiStyle style, const char* id_prefix, const char* event_object)
      : style_(std::move(style)),
        event_object_(event_object),
        id_(id_prefix + style_.request_id),
        created_(unix_time()) {}

  const OpenAiStyle& style() const { return style_; }
  Json head(const char* object) const {
    return {{"id", id_}, {"object", object}, {"created", created_}, {"model", style_.model}};
  }
  std::string event(Json choice) const {
    Json body = head(event_object_);
    body["choices"] = Json::array({std::move(choice)});
    return sse_event(dump(body));
  }

 private:
  const OpenAiStyle style_;
  const char* const event_object_;
  const std::string id_;
  const int64_t created_;
};

class ChatShape final : public OpenAiShape {
 public:
  explicit ChatShape(OpenAiStyle style)
      : OpenAiShape(std::move(style), "chatcmpl-", "chat.completion.chunk") {}

  std::string parts(int choice, const AnswerParts& parts, const Logprobs& logprobs) override {
    std::string events = opening(choice);
    bool first = true;
    for (const AnswerPart& part : parts) {
      events += chunk(choice, delta(choice, part), nullptr, first ? logprobs : Logprobs());
      first = false;
    }
    if (parts.empty()) events += chunk(choice, Json::object(), nullptr, logprobs);
    return events;
  }
  std::string finished(int choice, const Answer& answer, const Totals&) override {
    return opening(choice) + chunk(choice, Json::object(), name(answer.finish), {});
  }
  std::string whole(const std::vector<Answer>& answers, const Totals& totals) override {
    Json choices = Json::array();
    for (const Answer& answer : answers)
      choices.push_back({{"index", choices.size()},
                         {"message", message(answer)},
                         {"logprobs", logprobs_json(answer.logprobs, style().logprobs)},
                         {"finish_reason", name(answer.finish)}});
    Json body = head("chat.completion");
    body["choices"] = std::move(choices);
    add_end(body, totals);
    return dump(body);
  }

 private:
  static Json call_json(const Call& call) {
    return {{"id", call.id},
            {"type", "function"},
            {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
  }

  static Json message(const Answer& answer) {
    Json message = {{"role", "assistant"}, {"content", answer.content}, {"refusal", nullptr}};
    if (!answer.reasoning.empty()) message["reasoning_content"] = answer.reasoning;
    if (!answer.calls.empty()) {
      if (answer.content.empty()) message["content"] = nullptr;
      Json& calls = message["tool_calls"] = Json::array();
      for (const Call& call : answer.calls) calls.push_back(call_json(call));
    }
    return message;
  }

  Json delta(int choice, const AnswerPart& part) {
    int& n_calls = n_calls_[choice];
    switch (part.kind) {
      case AnswerPart::Kind::kReasoning:
        return {{"reasoning_content", part.text}};
      case AnswerPart::Kind::kContent:
        return {{"content", part.text}};
      case AnswerPart::Kind::kCall: {
        Json call = {{"index", n_calls}};
        const auto index = static_cast<size_t>(n_calls++);
        call.update(call_json({call_id(style().request_id, choice, index), part.text, ""}));
        return {{"tool_calls", Json::array({std::move(call)})}};
      }
      case AnswerPart::Kind::kArguments:
        break;
    }
    return {{"tool_calls",
             Json::array({{{"index", n_calls - 1}, {"function", {{"arguments", part.text}}}}})}};
  }

  // Clients know a message by its first chunk.
  std::string opening(int choice) {
    if (!n_calls_.try_emplace(choice, 0).second) return "";
    return chunk(choice, {{"role", "assistant"}, {"content", ""}}, nullptr, {});
  }

  std::string chunk(int choice, Json delta, Json finish_reason, const Logprobs& logprobs) const {
    return event({{"index", choice},
                  {"delta", std::move(delta)},
                  {"logprobs", logprobs_json(logprobs, !logprobs.empty())},
                  {"finish_reason", std::move(finish_reason)}});
  }

  static Json logprobs_json(const Logprobs& logprobs, bool wanted) {
    if (!wanted) return nullptr;
    Json content = Json::array();
    for (const TokenLogprob& token : logprobs) {
      Json each = token_json(token.bytes, token.logprob);
      Json& top = each["top_logprobs"] = Json::array();
      for (const auto& [bytes, logprob] : token.top) top.push_back(token_json(bytes, logprob));
      content.push_back(std::move(each));
    }
    return {{"content", std::move(content)}, {"refusal", nullptr}};
  }

  std::map<int, int> n_calls_;  // of each answer that has begun
};

class CompletionShape final : public OpenAiShape {
 public:
  explicit CompletionShape(OpenAiStyle style)
      : OpenAiShape(std::move(style), "cmpl-", "text_completion") {}

  std::string parts(int choice, const AnswerParts& parts, const Logprobs& logprobs) override {
    std::string text;
    for (const AnswerPart& part : parts) text += part.text;
    Json json = choice_json(choice, text, nullptr);
    if (!logprobs.empty()) json["logprobs"] = logprobs_json(logprobs, offsets_[choice]);
    return event(std::move(json));
  }
  std::string finished(int choice, const Answer& answer, const Totals&) override {
    return event(choice_json(choice, "", name(answer.finish)));
  }
  std::string whole(const std::vector<Answer>& answers, const Totals& totals) override {
    Json body = head("text_completion");
    Json& choices = body["choices"] = Json::array();
    for (const Answer& answer : answers) {
      Json json =
          choice_json(static_cast<int>(choices.size()), answer.content, name(answer.finish));
      size_t offset = 0;
      if (style().logprobs) json["logprobs"] = logprobs_json(answer.logprobs, offset);
      choices.push_back(std::move(json));
    }
    add_end(body, totals);
    return dump(body);
  }

 private:
  static Json choice_json(int choice, const std::string& text, Json finish_reason) {
    return {{"index", choice},
            {"text", text},
            {"logprobs", nullptr},
            {"finish_reason", std::move(finish_reason)}};
  }

  // Lists side by side; `offset` counts the bytes of the tokens before.
  static Json logprobs_json(const Logprobs& logprobs, size_t& offset) {
    Json tokens = Json::array(), values = Json::array(), tops = Json::array(),
         offsets = Json::array();
    for (const TokenLogprob& token : logprobs) {
      tokens.push_back(token.bytes);
      values.push_back(finite(token.logprob));
      Json top = Json::object();
      for (const auto& [bytes, logprob] : token.top) top[dump_key(bytes)] = finite(logprob);
      tops.push_back(std::move(top));
      offsets.push_back(offset);
      offset += token.bytes.size();
    }
    return {{"tokens", std::move(tokens)},
            {"token_logprobs", std::move(values)},
            {"top_logprobs", std::move(tops)},
            {"text_offset", std::move(offsets)}};
  }

  // Parts of characters would all become the same name: "bytes:\xe4\xb8" instead.
  static std::string dump_key(const std::string& bytes) {
    try {
      static_cast<void>(Json(bytes).dump());
      return bytes;
    } catch (const Json::exception&) {
      std::string name = "bytes:";
      for (const char c : bytes) name += format("\\x{:02x}", static_cast<unsigned char>(c));
      return name;
    }
  }

  std::map<int, size_t> offsets_;
};

}  // namespace

std::unique_ptr<AnswerShape> chat_shape(OpenAiStyle style) {
  return std::make_unique<ChatShape>(std::move(style));
}

std::unique_ptr<AnswerShape> completion_shape(OpenAiStyle style) {
  return std::make_unique<CompletionShape>(std::move(style));
}

}  // namespace strata::server
