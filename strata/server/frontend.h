#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strata/text/chat_template.h"
#include "strata/text/tokenizer.h"
#include "strata/text/value.h"

namespace strata::server {

struct ToolCall {
  std::string name;
  text::Value arguments;  // a map
};

struct ChatMessage {
  // "system", "user", "assistant" or "tool". Developer messages are system messages here.
  std::string role;
  std::string content;
  std::string reasoning;     // of an assistant's turn
  std::string tool_call_id;  // of a tool's turn
  std::vector<ToolCall> tool_calls;
};

struct ChatPrompt {
  std::vector<ChatMessage> messages;  // at least one; a system message first or later, see chat()
  std::vector<std::pair<std::string, text::Value>> variables;  // for the template
};

struct Prompt {
  std::vector<int32_t> ids;
  // The prompt ends inside an open <think> block: the answer begins with reasoning.
  bool in_reasoning = false;
};

// Text to ids and back, as the endpoints need it. Immutable; any thread.
class Frontend {
 public:
  virtual ~Frontend() = default;

  // The prompt of a chat, ready for the assistant's turn. Special tokens come from the template
  // alone, never from a message. A system message behind the first turn stays in its place; where
  // the template has no place for it, it becomes a user turn there, so its text is never lost.
  // Errors: kInvalidArgument with what the template raises.
  virtual Prompt chat(const ChatPrompt& prompt) const = 0;

  // Text as it is; with `special`, special tokens in it count.
  virtual std::vector<int32_t> encode(std::string_view text, bool special) const = 0;
  // As encode(), with what the model wants in front of a prompt.
  virtual std::vector<int32_t> encode_prompt(std::string_view text) const = 0;
  // The bytes, special tokens included. Ids are in range: contains().
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
  virtual bool contains(int32_t id) const = 0;
  // Sorted.
  virtual std::span<const int32_t> stop_ids() const = 0;
};

// Over a model's own tokenizer and chat template, both of which outlive it.
std::unique_ptr<Frontend> text_frontend(const text::Tokenizer& tokenizer,
                                        const text::ChatTemplate& chat_template);

}  // namespace strata::server
