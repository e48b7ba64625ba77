#include <string>
#include <utility>

#include "strata/base/error.h"
#include "strata/server/frontend.h"

namespace strata::server {
namespace {

using text::Value;

Value to_value(const ChatMessage& message) {
  // Roles come from a fixed list; the rest is text from outside.
  Value::Members members = {{"role", Value::scaffold(message.role)},
                            {"content", Value::content(message.content)}};
  if (!message.reasoning.empty())
    members.emplace_back("reasoning_content", Value::content(message.reasoning));
  if (!message.tool_call_id.empty())
    members.emplace_back("tool_call_id", Value::content(message.tool_call_id));
  if (!message.tool_calls.empty()) {
    Value::Items calls;
    for (const ToolCall& call : message.tool_calls)
      calls.push_back(Value::map(
          Value::Members{{"type", Value::scaffold("function")},
                         {"function", Value::map(Value::Members{{"name", Value::content(call.name)},
                                                                {"arguments", call.arguments}})}}));
    members.emplace_back("tool_calls", Value::list(std::move(calls)));
  }
  return Value::map(std::move(members));
}

// The text after the last <think> is blank: the answer goes on inside it.
bool ends_in_reasoning(const std::vector<text::RenderedSegment>& segments) {
  if (segments.empty() || segments.back().content) return false;
  const std::string_view tail = segments.back().text;
  constexpr std::string_view kOpen = "<think>";
  const size_t open = tail.rfind(kOpen);
  if (open == std::string_view::npos) return false;
  return tail.find_first_not_of(" \t\r\n", open + kOpen.size()) == std::string_view::npos;
}

class TextFrontend final : public Frontend {
 public:
  TextFrontend(const text::Tokenizer& tokenizer, const text::ChatTemplate& chat_template)
      : tokenizer_(tokenizer), template_(chat_template), takes_late_system_(probe_late_system()) {}

  Prompt chat(const ChatPrompt& prompt) const override {
    const auto segments = render(prompt, takes_late_system_);
    std::vector<text::Segment> parts;
    for (const auto& segment : segments) parts.push_back({segment.text, !segment.content});
    Prompt result;
    result.ids = with_bos(tokenizer_.encode(parts));
    result.in_reasoning = ends_in_reasoning(segments);
    return result;
  }

  std::vector<int32_t> encode(std::string_view text, bool special) const override {
    return tokenizer_.encode(text,
                             special ? text::SpecialParsing::kAllow : text::SpecialParsing::kNone);
  }
  std::vector<int32_t> encode_prompt(std::string_view text) const override {
    return with_bos(encode(text, true));
  }
  std::string decode(std::span<const int32_t> ids) const override { return tokenizer_.decode(ids); }
  bool contains(int32_t id) const override { return tokenizer_.contains(id); }
  std::span<const int32_t> stop_ids() const override { return tokenizer_.stop_ids(); }

 private:
  std::vector<text::RenderedSegment> render(const ChatPrompt& prompt, bool keep_late_system) const {
    Value::Items messages;
    bool leading = true;
    for (const ChatMessage& message : prompt.messages) {
      leading = leading && message.role == "system";
      ChatMessage shown = message;
      if (message.role == "system" && !leading && !keep_late_system) shown.role = "user";
      messages.push_back(to_value(shown));
    }
    Value::Members context = {{"messages", Value::list(std::move(messages))},
                              {"add_generation_prompt", Value::boolean(true)}};
    for (const auto& variable : prompt.variables) context.push_back(variable);
    return template_.render(Value::map(std::move(context)));
  }

  // Templates differ in what they do with a system message that is not the first: print it, drop
  // it, or refuse it.
  bool probe_late_system() const {
    const std::string word = "late system probe";
    ChatPrompt prompt;
    for (const auto& [role, content] : std::vector<std::pair<std::string, std::string>>{
             {"user", "a"}, {"assistant", "b"}, {"system", word}, {"user", "c"}}) {
      ChatMessage message;
      message.role = role;
      message.content = content;
      prompt.messages.push_back(std::move(message));
    }
    try {
      return text::joined(render(prompt, true)).find(word) != std::string::npos;
    } catch (const Error&) {
      return false;
    }
  }

  // A template may write the token itself.
  std::vector<int32_t> with_bos(std::vector<int32_t> ids) const {
    const auto bos = tokenizer_.bos_id();
    if (tokenizer_.add_bos() && bos && (ids.empty() || ids.front() != *bos))
      ids.insert(ids.begin(), *bos);
    return ids;
  }

  const text::Tokenizer& tokenizer_;
  const text::ChatTemplate& template_;
  const bool takes_late_system_;
};

}  // namespace

std::unique_ptr<Frontend> text_frontend(const text::Tokenizer& tokenizer,
                                        const text::ChatTemplate& chat_template) {
  return std::make_unique<TextFrontend>(tokenizer, chat_template);
}

}  // namespace strata::server
