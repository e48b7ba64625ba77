#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "strata/server/answer_shape.h"
#include "strata/server/api/tool_fields.h"
#include "strata/server/fields.h"
#include "strata/server/frontend.h"
#include "strata/server/generation.h"
#include "strata/server/sampling_fields.h"
#include "strata/server/services.h"

namespace strata::server {

using Variables = std::vector<std::pair<std::string, text::Value>>;

// A chat as any of the APIs asks for it.
struct ChatRequest {
  std::vector<ChatMessage> messages;
  std::string messages_path = "messages";  // what the template raises concerns this
  Tools tools;
  ToolChoice choice;
  bool parallel_calls = true;
  Variables variables;       // of the template
  std::string grammar;       // GBNF that the content must follow; empty: anything
  std::string grammar_path;  // the field that asked for it
  std::optional<int32_t> reasoning_budget;
  GenerationFields fields;
};

// The prompt's template input: with the tools, unless they are not to be known.
ChatPrompt chat_prompt(const ChatRequest& request);
// The prompt alone, as count_tokens and /apply-template need it. Errors: as make_chat.
Prompt render_chat(const ChatRequest& request, const Services& services);

// Errors: RequestError naming what is at fault: what the template raises, tools where the template
// has no place for them, and those of make_generation().
Generation make_chat(ChatRequest&& request, std::unique_ptr<AnswerShape> shape,
                     const Services& services);

// ---- fields that several APIs have in common

// "reasoning_effort", "enable_thinking", "chat_template_kwargs".
Variables read_variables(const Fields& body);
// Adds a variable. Errors: RequestError if there is one of this name.
void add_variable(Variables& variables, const std::string& path, const std::string& name,
                  text::Value value);
// The variables of an effort: its name, and with "none" or any other thinking off or on, unless
// "enable_thinking" is there.
void add_effort(Variables& variables, const std::string& path, const std::string& effort);

// Sets request.grammar to that of a schema, or of any JSON object without one.
void ask_for_json(ChatRequest& request, const Json* schema, const std::string& path);
// "grammar", "regex": ours. At most one, and none beside `request.grammar`.
void read_grammar_fields(const Fields& body, ChatRequest& request);

}  // namespace strata::server
