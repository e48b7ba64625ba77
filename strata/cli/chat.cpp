#include "strata/cli/chat.h"

#include <utility>

#include "strata/text/reasoning.h"

namespace strata::cli {

Chat::Chat(const text::Tokenizer& tokenizer, const text::ChatTemplate& chat_template,
           std::string system, std::string think)
    : builder_(tokenizer, chat_template), system_(std::move(system)), think_(std::move(think)) {}

void Chat::add_user(std::string text) {
  messages_.push_back({.role = "user", .content = std::move(text)});
}

void Chat::add_answer(const std::string& text, bool in_reasoning) {
  text::ReasoningSplit split(in_reasoning);
  text::ReasoningSplit::Part part = split.append(text);
  const text::ReasoningSplit::Part rest = split.finish();
  messages_.push_back({.role = "assistant",
                       .content = part.content + rest.content,
                       .reasoning = part.reasoning + rest.reasoning});
}

text::Prompt Chat::prompt() const {
  text::ChatPrompt chat;
  if (!system_.empty()) chat.messages.push_back({.role = "system", .content = system_});
  chat.messages.insert(chat.messages.end(), messages_.begin(), messages_.end());
  if (think_ != "auto") {
    chat.variables.emplace_back("enable_thinking", text::Value::boolean(think_ == "on"));
  }
  return builder_.chat(chat);
}

}  // namespace strata::cli
