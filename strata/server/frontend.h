#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/text/prompt.h"

namespace strata::server {

using text::ChatMessage;
using text::ChatPrompt;
using text::Prompt;
using text::ToolCall;

// Text to ids and back, as the endpoints need it. Immutable; any thread.
class Frontend {
 public:
  virtual ~Frontend() = default;

  // See text::PromptBuilder::chat.
  virtual Prompt chat(const ChatPrompt& prompt,
                      const text::PromptBuilder::Rendered& rendered = {}) const = 0;

  // The rendered text of a chat.
  virtual std::string chat_text(const ChatPrompt& prompt) const = 0;
  virtual text::CallFormat call_format() const = 0;
  // The chat template looks at this variable.
  virtual bool mentions(std::string_view variable) const = 0;

  // Text as it is; with `special`, special tokens in it count.
  virtual std::vector<int32_t> encode(std::string_view text, bool special) const = 0;
  // As encode(), with what the model wants in front of a prompt.
  virtual std::vector<int32_t> encode_prompt(std::string_view text) const = 0;
  // The bytes, special tokens included. Ids are in range: contains().
  virtual std::string decode(std::span<const int32_t> ids) const = 0;
  virtual bool contains(int32_t id) const = 0;
  // n bytes of text are at least n / this many tokens.
  virtual size_t longest_token_bytes() const = 0;
  // Sorted.
  virtual std::span<const int32_t> stop_ids() const = 0;
};

// Over a model's own tokenizer and chat template, both of which outlive it.
std::unique_ptr<Frontend> text_frontend(const text::Tokenizer& tokenizer,
                                        const text::ChatTemplate& chat_template);

}  // namespace strata::server
