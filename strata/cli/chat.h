#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "strata/text/prompt.h"

namespace strata::cli {

// A conversation in the terminal and its prompt. Messages are content: special tokens in them are
// plain text.
class Chat {
 public:
  // think: "auto", "on" or "off". All outlive the chat.
  Chat(const text::Tokenizer& tokenizer, const text::ChatTemplate& chat_template,
       std::string system, std::string think);

  void add_user(std::string text);
  // The answer as it came; what it thought goes to its own field. in_reasoning: of its prompt.
  void add_answer(const std::string& text, bool in_reasoning);
  void reset() { messages_.clear(); }
  bool empty() const { return messages_.empty(); }
  // Takes back the last message, e.g. one that did not fit.
  void drop_last() { messages_.pop_back(); }

  // Of the whole conversation, ready for the assistant's turn. Errors: kInvalidArgument with what
  // the template raises.
  text::Prompt prompt() const;

 private:
  text::PromptBuilder builder_;
  std::string system_, think_;
  std::vector<text::ChatMessage> messages_;
};

}  // namespace strata::cli
