#include "strata/server/api/responses.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "strata/base/format.h"
#include "strata/server/api/chat_messages.h"
#include "strata/server/api/chat_request.h"
#include "strata/server/api/responses_shape.h"
#include "strata/server/fields.h"
#include "strata/server/json.h"
#include "strata/server/request_error.h"

namespace strata::server {
namespace {

constexpr size_t kMaxItems = 20'000;

// A string, or a list of parts that hold text.
std::string read_parts(const Fields& parent, const char* name) {
  const Json* value = parent.find(name);
  if (value == nullptr) refuse_field(parent.path(name), "is missing");
  if (value->is_string()) return value->get<std::string>();
  const Json* list = parent.array(name, kMaxItems);
  std::string text;
  for (size_t i = 0; i < list->size(); ++i) {
    const Fields part((*list)[i], format("{}[{}]", parent.path(name), i));
    const std::string type = part.string("type").value_or("");
    if (type == "refusal") {
      text += part.string("refusal").value_or("");
      continue;
    }
    if (type != "input_text" && type != "output_text" && type != "text" &&
        type != "reasoning_text" && type != "summary_text")
      unsupported_field(part.path("type"), "only text is supported");
    const auto piece = part.string("text");
    if (!piece) refuse_field(part.path("text"), "is missing");
    text += *piece;
  }
  return text;
}

// The items of a conversation as messages: what an assistant thought, said and called between two
// others is one turn.
class ItemReader {
 public:
  std::vector<ChatMessage> read(const Fields& body) {
    if (const auto instructions = body.string("instructions"))
      add("system").content = *instructions;
    const Json* input = body.find("input");
    if (input == nullptr) refuse_field(body.path("input"), "is missing");
    if (input->is_string()) {
      add("user").content = input->get<std::string>();
      return std::move(messages_);
    }
    const Json* items = body.array("input", kMaxItems);
    if (items->empty()) refuse_field(body.path("input"), "must not be an empty list");
    for (size_t i = 0; i < items->size(); ++i)
      item(Fields((*items)[i], format("{}[{}]", body.path("input"), i)));
    return std::move(messages_);
  }

 private:
  ChatMessage& add(const std::string& role) {
    messages_.emplace_back().role = role;
    return messages_.back();
  }
  ChatMessage& assistant() {
    return !messages_.empty() && messages_.back().role == "assistant" ? messages_.back()
                                                                      : add("assistant");
  }

  void item(const Fields& item) {
    const std::string type = item.string("type").value_or("message");
    if (type == "message") return message(item);
    if (type == "function_call") {
      const auto name = item.string("name");
      if (!name || name->empty()) refuse_field(item.path("name"), "is missing");
      assistant().tool_calls.push_back({*name, read_arguments(item)});
    } else if (type == "function_call_output") {
      const auto call = item.string("call_id");
      if (!call || call->empty()) refuse_field(item.path("call_id"), "is missing");
      ChatMessage& result = add("tool");
      result.tool_call_id = *call;
      result.content = read_parts(item, "output");
    } else if (type == "reasoning") {
      // What it thought is in the content; a summary stands in where that is all there is.
      const Json* content = item.find("content");
      const bool has_content = content != nullptr && !content->empty();
      if (!has_content && item.find("summary") == nullptr) return;
      ChatMessage& turn = assistant();
      turn.reasoning += read_parts(item, has_content ? "content" : "summary");
    } else {
      unsupported_field(item.path("type"),
                        "only message, function_call, function_call_output and reasoning are "
                        "supported");
    }
  }

  void message(const Fields& item) {
    const std::string role = read_role(item);
    if (role == "tool")
      refuse_field(item.path("role"), "must be system, developer, user or assistant");
    const std::string text = read_parts(item, "content");
    // Leading system texts are one.
    if (role == "system" && messages_.size() == 1 && messages_.front().role == "system") {
      messages_.front().content += "\n\n" + text;
    } else if (role == "assistant") {
      assistant().content += text;
    } else {
      add(role).content = text;
    }
  }

  std::vector<ChatMessage> messages_;
};

ToolChoice read_response_choice(const Fields& body, const Tools& tools) {
  const Json* value = body.find("tool_choice");
  if (value == nullptr || value->is_string()) return read_tool_choice(body, tools);
  const Fields fields(*value, body.path("tool_choice"));
  if (fields.string("type").value_or("") != "function")
    unsupported_field(fields.path("type"), "only \"function\" is supported");
  const ToolChoice choice{ToolChoice::Kind::kNamed, fields.string("name").value_or("")};
  check_choice(choice, tools, fields.path("name"));
  return choice;
}

void read_text_format(const Fields& body, ChatRequest& request) {
  const Json* text = body.object("text");
  if (text == nullptr) return;
  const Fields outer(*text, body.path("text"));
  const Json* json = outer.object("format");
  if (json == nullptr) return;
  const Fields fields(*json, outer.path("format"));
  const std::string type = fields.string("type").value_or("");
  if (type == "text") return;
  if (type == "json_object") return ask_for_json(request, nullptr, outer.path("format"));
  if (type != "json_schema")
    unsupported_field(fields.path("type"), "must be text, json_object or json_schema");
  const Json* schema = fields.find("schema");
  if (schema == nullptr) refuse_field(fields.path("schema"), "is missing");
  ask_for_json(request, schema, fields.path("schema"));
}

void refuse_unsupported(const Fields& body) {
  refuse_unless_neutral(body, {"previous_response_id", "conversation", "background", "prompt",
                               "max_tool_calls", "top_logprobs"});
  if (const auto truncation = body.string("truncation");
      truncation.value_or("disabled") != "disabled")
    unsupported_field(body.path("truncation"), "nothing is ever cut: must be \"disabled\"");
  if (const Json* include = body.array("include", 64))
    for (const Json& each : *include)
      // What it would add is in the reasoning items anyway.
      if (each != "reasoning.encrypted_content")
        unsupported_field(body.path("include"), "only reasoning.encrypted_content is taken");
}

}  // namespace

Generation read_response(const std::string& body, const std::string& request_id,
                         const Services& services) {
  const Json json = parse_json(body);
  const Fields fields(json, "");
  fields.string("model");
  refuse_unsupported(fields);
  ChatRequest request;
  request.messages = ItemReader().read(fields);
  request.messages_path = "input";
  request.tools = read_tools(fields, kResponseTools);
  request.choice = read_response_choice(fields, request.tools);
  request.parallel_calls = fields.boolean("parallel_tool_calls").value_or(true);
  if (const Json* reasoning = fields.object("reasoning")) {
    const Fields inner(*reasoning, fields.path("reasoning"));
    if (const auto effort = inner.string("effort"))
      add_effort(request.variables, inner.path("effort"), *effort);
  }
  read_text_format(fields, request);
  request.fields =
      read_generation_fields(fields, services.config.default_sampling, services.frontend,
                             {nullptr, "max_output_tokens", nullptr, false});
  // The answer repeats what was asked.
  Json echo = Json::object();
  for (const char* name :
       {"instructions", "max_output_tokens", "parallel_tool_calls", "reasoning", "temperature",
        "text", "tool_choice", "tools", "top_p", "metadata", "user"})
    if (const Json* value = fields.find(name)) echo[name] = *value;
  return make_chat(std::move(request),
                   responses_shape(request_id, services.config.model_name, echo), services);
}

}  // namespace strata::server
