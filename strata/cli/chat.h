#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "strata/text/chat_template.h"
#include "strata/text/tokenizer.h"

namespace strata::cli {

// A conversation in the terminal and its prompt. Messages are content: special tokens in them are
// plain text.
class Chat {
 public:
  // think: "auto", "on" or "off". All outlive the chat.
  Chat(const text::Tokenizer& tokenizer, const text::ChatTemplate& chat_template,
       std::string system, std::string think);

  void add_user(std::string text);
  // The answer as it came; what it thought goes to its own field.
  void add_answer(const std::string& text);
  void reset() { messages_.clear(); }
  bool empty() const { return messages_.empty(); }
  // Takes back the last message, e.g. one that did not fit.
  void drop_last() { messages_.pop_back(); }

  // Ids of the whole conversation, ready for the assistant's turn. Errors: kInvalidArgument with
  // what the template raises.
  std::vector<int32_t> prompt() const;

 private:
  struct Message {
    const char* role;
    std::string content, reasoning;
  };

  const text::Tokenizer& tokenizer_;
  const text::ChatTemplate& template_;
  std::string system_, think_;
  std::vector<Message> messages_;
};

// With the token in front that the model wants there, if it is not there yet.
std::vector<int32_t> with_bos(const text::Tokenizer& tokenizer, std::vector<int32_t> ids);

}  // namespace strata::cli
