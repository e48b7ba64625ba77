#include "strata/server/api/messages.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "strata/base/format.h"
#include "strata/server/api/chat_messages.h"
#include "strata/server/api/chat_request.h"
#include "strata/server/api/messages_shape.h"
#include "strata/server/fields.h"
#include "strata/server/json.h"
#include "strata/server/request_error.h"

namespace strata::server {
namespace {

constexpr size_t kMaxMessages = 10'000;
constexpr size_t kMaxBlocks = 10'000;

std::string type_of(const Fields& block) {
  const auto type = block.string("type");
  if (!type) refuse_field(block.path("type"), "is missing");
  return *type;
}

std::string text_of(const Fields& block) {
  const auto text = block.string("text");
  if (!text) refuse_field(block.path("text"), "is missing");
  return *text;
}

// A string, or a list of text blocks.
std::string read_text(const Fields& parent, const char* name) {
  const Json* value = parent.find(name);
  if (value == nullptr) return "";
  if (value->is_string()) return value->get<std::string>();
  const Json* list = parent.array(name, kMaxBlocks);
  std::string text;
  for (size_t i = 0; i < list->size(); ++i) {
    const Fields block((*list)[i], format("{}[{}]", parent.path(name), i));
    if (type_of(block) != "text")
      unsupported_field(block.path("type"), "only text blocks are supported here");
    text += (i > 0 && std::string_view(name) == "system" ? "\n\n" : "") + text_of(block);
  }
  return text;
}

class MessageReader {
 public:
  std::vector<ChatMessage> read(const Fields& body) {
    const std::string system = read_text(body, "system");
    if (!system.empty()) add("system").content = system;
    const Json* list = body.array("messages", kMaxMessages);
    if (list == nullptr) refuse_field(body.path("messages"), "is missing");
    if (list->empty()) refuse_field(body.path("messages"), "must hold at least one message");
    for (size_t i = 0; i < list->size(); ++i)
      message(Fields((*list)[i], format("{}[{}]", body.path("messages"), i)));
    if (messages_.back().role == "assistant")
      unsupported_field(format("{}[{}]", body.path("messages"), list->size() - 1),
                        "the last message must not be the assistant's: an answer is a new turn");
    return std::move(messages_);
  }

 private:
  ChatMessage& add(const std::string& role) {
    messages_.emplace_back().role = role;
    return messages_.back();
  }

  void message(const Fields& message) {
    const auto role = message.string("role");
    if (role != "user" && role != "assistant" && role != "system")
      refuse_field(message.path("role"), "must be user or assistant");
    const Json* content = message.find("content");
    if (content == nullptr) refuse_field(message.path("content"), "is missing");
    if (content->is_string()) {
      add(*role).content = content->get<std::string>();
      return;
    }
    const Json* blocks = message.array("content", kMaxBlocks);
    if (blocks->empty()) refuse_field(message.path("content"), "must not be an empty list");
    if (*role == "assistant")
      assistant(*blocks, message.path("content"));
    else
      user(*blocks, message.path("content"), *role);
  }

  // The results of tools are turns of their own, in front of what the user says.
  void user(const Json& blocks, const std::string& path, const std::string& role) {
    ChatMessage said;
    said.role = role;
    bool has_text = false;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const Fields block(blocks[i], format("{}[{}]", path, i));
      const std::string type = type_of(block);
      if (type == "text") {
        said.content += text_of(block);
        has_text = true;
      } else if (type == "tool_result" && role == "user") {
        ChatMessage& result = add("tool");
        result.tool_call_id = block.string("tool_use_id").value_or("");
        if (result.tool_call_id.empty()) refuse_field(block.path("tool_use_id"), "is missing");
        result.content = read_text(block, "content");
        if (block.boolean("is_error").value_or(false)) result.content = "Error: " + result.content;
      } else {
        unsupported_field(block.path("type"), "only text and tool_result are supported");
      }
    }
    if (has_text) messages_.push_back(std::move(said));
  }

  void assistant(const Json& blocks, const std::string& path) {
    ChatMessage& said = add("assistant");
    for (size_t i = 0; i < blocks.size(); ++i) {
      const Fields block(blocks[i], format("{}[{}]", path, i));
      const std::string type = type_of(block);
      if (type == "text") {
        said.content += text_of(block);
      } else if (type == "thinking") {
        said.reasoning += block.string("thinking").value_or("");
      } else if (type == "tool_use") {
        const auto name = block.string("name");
        if (!name || name->empty()) refuse_field(block.path("name"), "is missing");
        const Json* input = block.object("input");
        said.tool_calls.push_back({*name, to_value(input == nullptr ? Json::object() : *input)});
      } else if (type != "redacted_thinking") {
        unsupported_field(block.path("type"), "only text, thinking and tool_use are supported");
      }
    }
  }

  std::vector<ChatMessage> messages_;
};

void read_anthropic_choice(const Fields& body, ChatRequest& request) {
  const Json* json = body.object("tool_choice");
  if (json == nullptr) return;
  const Fields fields(*json, body.path("tool_choice"));
  const std::string type = fields.string("type").value_or("");
  using Kind = ToolChoice::Kind;
  if (type == "none")
    request.choice.kind = Kind::kNone;
  else if (type == "any")
    request.choice.kind = Kind::kRequired;
  else if (type == "tool")
    request.choice = {Kind::kNamed, fields.string("name").value_or("")};
  else if (type != "auto")
    refuse_field(fields.path("type"), "must be auto, any, tool or none");
  request.parallel_calls = !fields.boolean("disable_parallel_tool_use").value_or(false);
  check_choice(request.choice, request.tools,
               type == "tool" ? fields.path("name") : body.path("tool_choice"));
}

void read_thinking(const Fields& body, ChatRequest& request) {
  bool enabled = false;
  if (const Json* json = body.object("thinking")) {
    const Fields fields(*json, body.path("thinking"));
    const std::string type = fields.string("type").value_or("");
    enabled = type == "enabled" || type == "adaptive";
    if (!enabled && type != "disabled")
      refuse_field(fields.path("type"), "must be enabled, adaptive or disabled");
    const auto budget = fields.integer("budget_tokens", 1, INT32_MAX);
    if (type == "enabled" && !budget) refuse_field(fields.path("budget_tokens"), "is missing");
    if (type == "enabled") request.reasoning_budget = static_cast<int32_t>(*budget);
  }
  add_variable(request.variables, body.path("thinking"), "enable_thinking",
               text::Value::boolean(enabled));
}

ChatRequest read_request(const Fields& body, const Services& services) {
  body.string("model");
  refuse_unless_neutral(
      body, {"container", "mcp_servers", "context_management", "output_format", "output_config"});
  ChatRequest request;
  request.messages = MessageReader().read(body);
  request.tools = read_tools(body, kAnthropicTools);
  read_anthropic_choice(body, request);
  read_thinking(body, request);
  request.fields = read_generation_fields(body, services.config.default_sampling, services.frontend,
                                          {"stop_sequences", "max_tokens", nullptr, false});
  return request;
}

}  // namespace

Generation read_message(const std::string& body, const std::string& request_id,
                        const Services& services) {
  const Json json = parse_json(body);
  const Fields fields(json, "");
  if (fields.find("max_tokens") == nullptr) refuse_field("max_tokens", "is missing");
  ChatRequest request = read_request(fields, services);
  return make_chat(std::move(request), messages_shape(request_id, services.config.model_name),
                   services);
}

std::string count_tokens(const std::string& body, const Services& services) {
  const Json json = parse_json(body);
  const ChatRequest request = read_request(Fields(json, ""), services);
  return dump({{"input_tokens", render_chat(request, services).ids.size()}});
}

Response anthropic_error(Response error, const std::string& request_id) {
  const char* type = "api_error";
  switch (error.status) {
    case 401:
      type = "authentication_error";
      break;
    case 403:
      type = "permission_error";
      break;
    case 404:
      type = "not_found_error";
      break;
    case 413:
      type = "request_too_large";
      break;
    case 429:
      type = "rate_limit_error";
      break;
    case 503:
      type = "overloaded_error";
      break;
    default:
      if (error.status < 500) type = "invalid_request_error";
  }
  const Json before = Json::parse(error.body, nullptr, false);
  const auto inner = before.is_object() ? before.find("error") : before.end();
  if (!before.is_object() || inner == before.end()) return error;
  error.body = dump({{"type", "error"},
                     {"error", {{"type", type}, {"message", inner->value("message", "")}}},
                     {"request_id", request_id}});
  return error;
}

}  // namespace strata::server
