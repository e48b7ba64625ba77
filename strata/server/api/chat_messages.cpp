#include "strata/server/api/chat_messages.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "strata/base/format.h"
#include "strata/server/request_error.h"

namespace strata::server {
std::string read_role(const Fields& message) {
  const auto role = message.string("role");
  if (!role) refuse_field(message.path("role"), "is missing");
  if (*role == "developer") return "system";
  for (const char* known : {"system", "user", "assistant", "tool"})
    if (*role == known) return *role;
  refuse_field(message.path("role"), "must be system, developer, user, assistant or tool");
}

text::Value read_arguments(const Fields& function) {
  const Json* arguments = function.find("arguments");
  const std::string path = function.path("arguments");
  if (arguments == nullptr) return to_value(Json::object());
  if (arguments->is_object()) return to_value(*arguments);
  if (arguments->is_string()) {
    const auto& text = arguments->get_ref<const std::string&>();
    // Some clients say "no arguments" this way.
    if (text.empty()) return to_value(Json::object());
    try {
      const Json value = parse_json(text, "the string");
      if (value.is_object()) return to_value(value);
    } catch (const RequestError& e) {
      refuse_field(path, e.message());
    }
  }
  refuse_field(path, "must be an object, or a string holding one");
}

namespace {

constexpr size_t kMaxMessages = 10'000;
constexpr size_t kMaxParts = 10'000;
constexpr size_t kMaxCalls = 1'000;

std::string read_parts(const Json& parts, const std::string& path) {
  if (parts.empty()) refuse_field(path, "must not be an empty list");
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Fields part(parts[i], format("{}[{}]", path, i));
    const auto type = part.string("type");
    if (!type) refuse_field(part.path("type"), "is missing");
    if (*type != "text") unsupported_field(part.path("type"), "only text parts are supported");
    const auto piece = part.string("text");
    if (!piece) refuse_field(part.path("text"), "is missing");
    text += *piece;
  }
  return text;
}

std::string read_content(const Fields& message, const std::string& role) {
  const Json* content = message.find("content");
  if (content == nullptr) {
    if (role == "assistant") return "";
    refuse_field(message.path("content"), "is missing");
  }
  if (content->is_string()) return content->get<std::string>();
  if (content->is_array())
    return read_parts(*message.array("content", kMaxParts), message.path("content"));
  refuse_field(message.path("content"),
               format("must be a string or a list of parts, not {}", kind_of(*content)));
}

std::vector<ToolCall> read_tool_calls(const Fields& message, const std::string& role) {
  const Json* calls = message.array("tool_calls", kMaxCalls);
  if (calls == nullptr) return {};
  if (role != "assistant")
    refuse_field(message.path("tool_calls"), "only an assistant's message has them");
  std::vector<ToolCall> result;
  for (size_t i = 0; i < calls->size(); ++i) {
    const Fields call((*calls)[i], format("{}[{}]", message.path("tool_calls"), i));
    if (const auto type = call.string("type"); type.value_or("function") != "function")
      unsupported_field(call.path("type"), "only functions can be called");
    const Json* function_json = call.object("function");
    if (function_json == nullptr) refuse_field(call.path("function"), "is missing");
    const Fields function(*function_json, call.path("function"));
    const auto name = function.string("name");
    if (!name || name->empty()) refuse_field(function.path("name"), "is missing");
    result.push_back({*name, read_arguments(function)});
  }
  return result;
}

ChatMessage read_message(const Fields& message) {
  ChatMessage result;
  result.role = read_role(message);
  result.content = read_content(message, result.role);
  result.tool_calls = read_tool_calls(message, result.role);
  if (result.role == "assistant")
    result.reasoning = message.string("reasoning_content").value_or("");
  if (result.role == "tool") result.tool_call_id = message.string("tool_call_id").value_or("");
  return result;
}

}  // namespace

std::vector<ChatMessage> read_messages(const Fields& body) {
  const Json* list = body.array("messages", kMaxMessages);
  if (list == nullptr) refuse_field(body.path("messages"), "is missing");
  if (list->empty()) refuse_field(body.path("messages"), "must hold at least one message");
  std::vector<ChatMessage> messages;
  bool leading = true;
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string path = format("{}[{}]", body.path("messages"), i);
    ChatMessage message = read_message(Fields((*list)[i], path));
    leading = leading && message.role == "system";
    if (leading && !messages.empty())
      messages.front().content += "\n\n" + message.content;
    else
      messages.push_back(std::move(message));
  }
  return messages;
}

}  // namespace strata::server
