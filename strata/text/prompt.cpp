#include "strata/text/prompt.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/text.h"

namespace strata::text {
namespace {

Value to_value(const ChatMessage& message, const std::string& role) {
  // Roles come from a fixed list; the rest is text from outside.
  Value::Members members = {{"role", Value::scaffold(role)},
                            {"content", Value::content(message.content)}};
  if (!message.reasoning.empty()) {
    members.emplace_back("reasoning_content", Value::content(message.reasoning));
  }
  if (!message.tool_call_id.empty()) {
    members.emplace_back("tool_call_id", Value::content(message.tool_call_id));
  }
  if (!message.tool_calls.empty()) {
    Value::Items calls;
    for (const ToolCall& call : message.tool_calls) {
      calls.push_back(Value::map(
          Value::Members{{"type", Value::scaffold("function")},
                         {"function", Value::map(Value::Members{{"name", Value::content(call.name)},
                                                                {"arguments", call.arguments}})}}));
    }
    members.emplace_back("tool_calls", Value::list(std::move(calls)));
  }
  return Value::map(std::move(members));
}

// The text after the last <think> is blank: the answer goes on inside it.
bool ends_in_reasoning(const std::vector<RenderedSegment>& segments) {
  if (segments.empty() || segments.back().content) return false;
  const std::string_view tail = segments.back().text;
  constexpr std::string_view kOpen = "<think>";
  const size_t open = tail.rfind(kOpen);
  return open != std::string_view::npos && trimmed(tail.substr(open + kOpen.size())).empty();
}

std::vector<int32_t> message_starts(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::vector<int32_t> starts;
  const std::span<const int32_t> ends = tokenizer.stop_ids();
  for (size_t i = 1; i < ids.size(); ++i) {
    if (tokenizer.is_control(ids[i]) && !tokenizer.is_control(ids[i - 1]) &&
        std::ranges::find(ends, ids[i]) == ends.end()) {
      starts.push_back(static_cast<int32_t>(i));
    }
  }
  return starts;
}

}  // namespace

PromptBuilder::PromptBuilder(const Tokenizer& tokenizer, const ChatTemplate& chat_template)
    : tokenizer_(tokenizer),
      template_(chat_template),
      takes_late_system_(probe_late_system()),
      call_format_(probe_call_format()) {}

Prompt PromptBuilder::chat(const ChatPrompt& prompt, const Rendered& rendered) const {
  const auto segments = render(prompt, takes_late_system_);
  std::vector<Segment> parts;
  size_t n_bytes = 0;
  for (const auto& segment : segments) {
    parts.push_back({segment.text, !segment.content});
    n_bytes += segment.text.size();
  }
  if (rendered) rendered(n_bytes);
  Prompt result;
  result.ids = with_bos(tokenizer_, tokenizer_.encode(parts));
  result.boundaries = message_starts(tokenizer_, result.ids);
  result.in_reasoning = ends_in_reasoning(segments);
  return result;
}

std::string PromptBuilder::text(const ChatPrompt& prompt) const {
  return joined(render(prompt, takes_late_system_));
}

std::vector<RenderedSegment> PromptBuilder::render(const ChatPrompt& prompt,
                                                   bool keep_late_system) const {
  Value::Items messages;
  bool leading = true;
  for (const ChatMessage& message : prompt.messages) {
    const bool is_system = message.role == "system";
    leading = leading && is_system;
    const bool late = is_system && !leading && !keep_late_system;
    messages.push_back(to_value(message, late ? "user" : message.role));
  }
  Value::Members context = {{"messages", Value::list(std::move(messages))},
                            {"add_generation_prompt", Value::boolean(true)}};
  if (!prompt.tools.empty()) context.emplace_back("tools", Value::list(prompt.tools));
  for (const auto& variable : prompt.variables) {
    if (ChatTemplate::is_function(variable.first)) {
      throw Error(ErrorCode::kInvalidArgument,
                  format("\"{}\" is a function of the template language: no variable may have its "
                         "name",
                         variable.first));
    }
    context.push_back(variable);
  }
  return template_.render(Value::map(std::move(context)));
}

// Templates differ in what they do with a system message that is not the first: print it, drop it,
// or refuse it.
bool PromptBuilder::probe_late_system() const {
  const std::string word = "late system probe";
  const ChatPrompt prompt{.messages = {{.role = "user", .content = "a"},
                                       {.role = "assistant", .content = "b"},
                                       {.role = "system", .content = word},
                                       {.role = "user", .content = "c"}}};
  try {
    return joined(render(prompt, true)).find(word) != std::string::npos;
  } catch (const Error&) {
    return false;
  }
}

// Calls are found by the form that the template itself gives them.
CallFormat PromptBuilder::probe_call_format() const {
  if (!template_.mentions("tools")) return CallFormat::kNone;
  const Value arguments = Value::map(Value::Members{{"key", Value::content("value")}});
  const ChatPrompt prompt{.messages = {{.role = "user", .content = "a"},
                                       {.role = "assistant", .tool_calls = {{"probe", arguments}}},
                                       {.role = "tool", .content = "b"}}};
  try {
    const std::string shown = joined(render(prompt, true));
    const auto shows = [&](const char* form) { return shown.find(form) != std::string::npos; };
    if (!shows("<tool_call>")) return CallFormat::kNone;
    if (shows("<function=probe>")) return CallFormat::kXml;
    if (shows("\"name\": \"probe\"")) return CallFormat::kJson;
  } catch (const Error&) {
  }
  return CallFormat::kNone;
}

std::vector<int32_t> with_bos(const Tokenizer& tokenizer, std::vector<int32_t> ids) {
  const auto bos = tokenizer.bos_id();
  if (tokenizer.add_bos() && bos && (ids.empty() || ids.front() != *bos)) {
    ids.insert(ids.begin(), *bos);
  }
  return ids;
}

}  // namespace strata::text
