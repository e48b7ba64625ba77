#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "strata/text/chat_template.h"
#include "strata/text/tokenizer.h"
#include "strata/text/value.h"

namespace strata::text {

struct ToolCall {
  std::string name;
  Value arguments;  // a map
};

struct ChatMessage {
  std::string role;  // "system", "user", "assistant" or "tool"
  std::string content;
  std::string reasoning;     // of an assistant's turn
  std::string tool_call_id;  // of a tool's turn
  std::vector<ToolCall> tool_calls;
};

struct ChatPrompt {
  std::vector<ChatMessage> messages;                     // at least one; system messages anywhere
  std::vector<std::pair<std::string, Value>> variables;  // for the template
};

struct Prompt {
  std::vector<int32_t> ids;
  // The prompt ends inside an open <think> block: the answer begins with reasoning.
  bool in_reasoning = false;
};

// Prompts of a model's own tokenizer and chat template, both of which outlive it. Immutable; any
// thread.
class PromptBuilder {
 public:
  PromptBuilder(const Tokenizer& tokenizer, const ChatTemplate& chat_template);

  // Told how many bytes a rendered prompt has, before they are made tokens. What it throws leaves.
  using Rendered = std::function<void(size_t n_bytes)>;

  // A chat, ready for the assistant's turn. Special tokens come from the template alone, never from
  // a message. A system message behind the first turn stays in its place; where the template has no
  // place for it, it becomes a user turn there, so its text is never lost.
  // Errors: kInvalidArgument with what the template raises, and for a variable that has the name of
  // a function of templates.
  Prompt chat(const ChatPrompt& prompt, const Rendered& rendered = {}) const;

 private:
  std::vector<RenderedSegment> render(const ChatPrompt& prompt, bool keep_late_system) const;
  bool probe_late_system() const;

  const Tokenizer& tokenizer_;
  const ChatTemplate& template_;
  const bool takes_late_system_;
};

// With the token in front that the model wants there, if it is not there yet: a template may write
// it itself.
std::vector<int32_t> with_bos(const Tokenizer& tokenizer, std::vector<int32_t> ids);

}  // namespace strata::text
