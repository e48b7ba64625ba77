#include "strata/cli/chat.h"

namespace strata::cli {
namespace {

using text::Value;

Value to_value(const char* role, const std::string& content, const std::string& reasoning) {
  Value::Members members = {{"role", Value::scaffold(role)}, {"content", Value::content(content)}};
  if (!reasoning.empty()) members.emplace_back("reasoning_content", Value::content(reasoning));
  return Value::map(std::move(members));
}

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
}

}  // namespace

Chat::Chat(const text::Tokenizer& tokenizer, const text::ChatTemplate& chat_template,
           std::string system, std::string think)
    : tokenizer_(tokenizer),
      template_(chat_template),
      system_(std::move(system)),
      think_(std::move(think)) {}

void Chat::add_user(std::string text) { messages_.push_back({"user", std::move(text), {}}); }

void Chat::add_answer(const std::string& text) {
  constexpr std::string_view kOpen = "<think>", kClose = "</think>";
  Message message{"assistant", text, {}};
  const size_t close = text.find(kClose);
  if (close != std::string::npos) {
    std::string_view thought = std::string_view(text).substr(0, close);
    const size_t open = thought.find(kOpen);
    if (open != std::string_view::npos) thought.remove_prefix(open + kOpen.size());
    message.reasoning = trimmed(thought);
    message.content = trimmed(std::string_view(text).substr(close + kClose.size()));
  }
  messages_.push_back(std::move(message));
}

std::vector<int32_t> Chat::prompt() const {
  Value::Items messages;
  if (!system_.empty()) messages.push_back(to_value("system", system_, {}));
  for (const Message& m : messages_) messages.push_back(to_value(m.role, m.content, m.reasoning));
  Value::Members context = {{"messages", Value::list(std::move(messages))},
                            {"add_generation_prompt", Value::boolean(true)}};
  if (think_ != "auto") context.emplace_back("enable_thinking", Value::boolean(think_ == "on"));
  const auto rendered = template_.render(Value::map(std::move(context)));
  std::vector<text::Segment> segments;
  for (const auto& segment : rendered) segments.push_back({segment.text, !segment.content});
  return with_bos(tokenizer_, tokenizer_.encode(segments));
}

std::vector<int32_t> with_bos(const text::Tokenizer& tokenizer, std::vector<int32_t> ids) {
  const auto bos = tokenizer.bos_id();
  if (tokenizer.add_bos() && bos && (ids.empty() || ids.front() != *bos)) {
    ids.insert(ids.begin(), *bos);
  }
  return ids;
}

}  // namespace strata::cli
