#include "strata/server/api/chat.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "strata/base/format.h"
#include "strata/server/api/chat_messages.h"
#include "strata/server/fields.h"
#include "strata/server/json.h"
#include "strata/server/request_error.h"
#include "strata/server/sampling_fields.h"
#include "strata/server/usage_json.h"

namespace strata::server {
namespace {

class ChatShape final : public AnswerShape {
 public:
  ChatShape(const std::string& request_id, std::string model)
      : id_("chatcmpl-" + request_id), model_(std::move(model)), created_(unix_time()) {}

  std::string opening() const override {
    return chunk({{"role", "assistant"}, {"content", ""}}, nullptr);
  }
  std::string piece(const text::ReasoningSplit::Part& part) const override {
    Json delta = Json::object();
    if (!part.reasoning.empty()) delta["reasoning_content"] = part.reasoning;
    if (!part.content.empty()) delta["content"] = part.content;
    return chunk(std::move(delta), nullptr);
  }
  std::string closing(std::string_view finish_reason) const override {
    return chunk(Json::object(), finish_reason);
  }
  std::string usage(const wire::Finished& end) const override {
    Json body = head("chat.completion.chunk");
    body["choices"] = Json::array();
    add_end(body, end);
    return dump(body);
  }
  std::string whole(const Whole& answer) const override {
    Json message = {{"role", "assistant"}, {"content", answer.content}, {"refusal", nullptr}};
    if (!answer.reasoning.empty()) message["reasoning_content"] = answer.reasoning;
    Json body = head("chat.completion");
    body["choices"] = Json::array({{{"index", 0},
                                    {"message", std::move(message)},
                                    {"logprobs", nullptr},
                                    {"finish_reason", answer.finish_reason}}});
    add_end(body, answer.end);
    return dump(body);
  }

 private:
  Json head(const char* object) const {
    return {{"id", id_}, {"object", object}, {"created", created_}, {"model", model_}};
  }
  std::string chunk(Json delta, Json finish_reason) const {
    Json body = head("chat.completion.chunk");
    body["choices"] = Json::array({{{"index", 0},
                                    {"delta", std::move(delta)},
                                    {"logprobs", nullptr},
                                    {"finish_reason", std::move(finish_reason)}}});
    return dump(body);
  }

  const std::string id_, model_;
  const int64_t created_;
};

void refuse_unsupported(const Fields& body) {
  refuse_unless_neutral(body, {"tools", "functions", "logprobs", "top_logprobs", "audio",
                               "web_search_options", "prediction"});
  const auto choice_is = [&](const char* name, const char* neutral) {
    const Json* value = body.find(name);
    return value == nullptr || (value->is_string() && *value == neutral);
  };
  for (const char* name : {"tool_choice", "function_call"})
    if (!choice_is(name, "none") && !choice_is(name, "auto"))
      unsupported_field(body.path(name), "is not supported");
  if (const Json* format_json = body.object("response_format")) {
    const Fields fields(*format_json, body.path("response_format"));
    if (fields.string("type").value_or("") != "text")
      unsupported_field(fields.path("type"), "only text is supported");
  }
  if (const Json* modalities = body.array("modalities", 16))
    for (const Json& each : *modalities)
      if (each != "text") unsupported_field(body.path("modalities"), "only text is supported");
}

// "false" for false is a mistake that a template would take for true.
void check_variable(const std::string& path, const Json& value, bool must_be_bool) {
  const bool looks_bool =
      value == "true" || value == "false" || value == "True" || value == "False";
  if (looks_bool || (must_be_bool && !value.is_boolean()))
    refuse_field(path, format("must be true or false, not {}", kind_of(value)));
}

std::vector<std::pair<std::string, text::Value>> read_variables(const Fields& body) {
  std::vector<std::pair<std::string, text::Value>> result;
  const auto add = [&](const std::string& path, const std::string& name, const Json& value) {
    for (const auto& [known, unused] : result)
      if (known == name) refuse_field(path, "is given twice");
    result.emplace_back(name, to_value(value));
  };
  if (const Json* map = body.object("chat_template_kwargs")) {
    const Fields fields(*map, body.path("chat_template_kwargs"));
    for (const auto& [name, value] : map->items()) {
      for (const char* ours :
           {"messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"})
        if (name == ours) refuse_field(fields.path(name), "is not the client's to set");
      if (text::ChatTemplate::is_function(name))
        refuse_field(fields.path(name), "is the name of a function of chat templates");
      check_variable(fields.path(name), value, name == "enable_thinking");
      add(fields.path(name), name, value);
    }
  }
  if (const auto thinking = body.boolean("enable_thinking"))
    add(body.path("enable_thinking"), "enable_thinking", *thinking);
  if (const auto effort = body.string("reasoning_effort")) {
    bool known = false;
    for (const char* word : {"none", "minimal", "low", "medium", "high", "xhigh"})
      known = known || *effort == word;
    if (!known)
      refuse_field(body.path("reasoning_effort"),
                   "must be none, minimal, low, medium, high or xhigh");
    add(body.path("reasoning_effort"), "reasoning_effort", *effort);
  }
  return result;
}

}  // namespace

Generation read_chat(const std::string& body, const std::string& request_id,
                     const Services& services) {
  const Json json = parse_json(body);
  const Fields fields(json, "");
  fields.string("model");
  refuse_unsupported(fields);
  ChatPrompt chat;
  chat.messages = read_messages(fields);
  chat.variables = read_variables(fields);
  GenerationFields options =
      read_generation_fields(fields, services.config.default_sampling, services.frontend);
  Prompt prompt;
  try {
    prompt = services.frontend.chat(
        chat, [&](size_t n_bytes) { refuse_too_long(n_bytes, options.max_tokens, services); });
  } catch (const RequestError&) {
    throw;
  } catch (const Error& e) {
    // What the template raises concerns the messages.
    if (e.code() != ErrorCode::kInvalidArgument) throw;
    refuse_field("messages", e.what());
  }

  Generation result = make_generation(
      std::move(prompt.ids), std::move(options),
      std::make_unique<ChatShape>(request_id, services.config.model_name), services);
  result.split_reasoning = true;
  result.in_reasoning = prompt.in_reasoning;
  return result;
}

}  // namespace strata::server
