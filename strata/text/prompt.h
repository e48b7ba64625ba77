#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
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
  std::vector<Value> tools;                              // maps, as clients describe functions
  std::vector<std::pair<std::string, Value>> variables;  // for the template
};

struct Prompt {
  std::vector<int32_t> ids;
  // Of a chat, where messages begin, in tokens, rising: at a control token behind ordinary ones
  // that does not end a turn.
  std::vector<int32_t> boundaries;
  // The prompt ends inside an open <think> block: the answer begins with reasoning.
  bool in_reasoning = false;
};

// How a model writes the call of a tool, as its template shows it calls of earlier turns. Both
// inside <tool_call> ... </tool_call>.
enum class CallFormat : uint8_t {
  kNone,  // the template has no place for tools
  kXml,   // <function=NAME> <parameter=KEY> VALUE </parameter> </function>
  kJson,  // {"name": "NAME", "arguments": {...}}
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
  // The text of it, as /apply-template shows it. Errors: as chat().
  std::string text(const ChatPrompt& prompt) const;

  CallFormat call_format() const { return call_format_; }
  // The template looks at this variable.
  bool mentions(std::string_view variable) const { return template_.mentions(variable); }

 private:
  std::vector<RenderedSegment> render(const ChatPrompt& prompt, bool keep_late_system) const;
  bool probe_late_system() const;
  CallFormat probe_call_format() const;

  const Tokenizer& tokenizer_;
  const ChatTemplate& template_;
  const bool takes_late_system_;
  const CallFormat call_format_;
};

// With the token in front that the model wants there, if it is not there yet: a template may write
// it itself.
std::vector<int32_t> with_bos(const Tokenizer& tokenizer, std::vector<int32_t> ids);

}  // namespace strata::text
