#include "strata/server/api/chat_request.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "strata/base/format.h"
#include "strata/server/answer/call_grammar.h"
#include "strata/server/json.h"
#include "strata/server/json_schema.h"
#include "strata/server/request_error.h"
#include "strata/text/grammar/gbnf.h"
#include "strata/text/grammar/gbnf_writer.h"
#include "strata/text/grammar/json_text.h"
#include "strata/text/grammar/regex.h"

namespace strata::server {
namespace {

constexpr const char* kThinkOpen = "<think>";
constexpr const char* kThinkClose = "</think>";
// What a model says when its time to think is over.
constexpr const char* kWrapUp = "\nI have thought long enough, so I answer now.\n</think>\n\n";

bool has_tools(const ChatRequest& request) {
  return !request.tools.empty() && request.choice.kind != ToolChoice::Kind::kNone;
}

// What the whole answer must look like, behind its reasoning.
std::string answer_grammar(const ChatRequest& request, text::CallFormat calls) {
  const CallGrammar how{calls, request.parallel_calls};
  std::string root, rules;
  switch (has_tools(request) ? request.choice.kind : ToolChoice::Kind::kNone) {
    case ToolChoice::Kind::kRequired:
      return "root ::= calls-root\n" + calls_gbnf(request.tools, how, "calls-");
    case ToolChoice::Kind::kNamed:
      return "root ::= calls-root\n" +
             calls_gbnf({*find_tool(request.tools, request.choice.name)}, how, "calls-");
    case ToolChoice::Kind::kAuto: {
      const bool strict = std::ranges::any_of(request.tools, &Tool::strict);
      if (request.grammar.empty())
        return strict ? "root ::= text-root\n" + text_and_calls_gbnf(request.tools, how, "text-")
                      : "";
      return "root ::= content-root | calls-root\n" + request.grammar +
             calls_gbnf(request.tools, how, "calls-");
    }
    case ToolChoice::Kind::kNone:
      break;
  }
  return request.grammar.empty() ? "" : "root ::= content-root\n" + request.grammar;
}

// "false" for false is a mistake that a template would take for true.
void check_variable(const std::string& path, const Json& value, bool must_be_bool) {
  const bool looks_bool =
      value == "true" || value == "false" || value == "True" || value == "False";
  if (looks_bool || (must_be_bool && !value.is_boolean()))
    refuse_field(path, format("must be true or false, not {}", kind_of(value)));
}

// As the rules of the content, which others may stand beside.
std::string written(const text::Grammar& grammar, const std::string& path,
                    const std::string& source) {
  try {
    return to_gbnf(grammar, "content-");
  } catch (const Error& e) {
    throw RequestError(e.code(), format("{}{}: {}", path, source, e.message()), path);
  }
}

bool has_variable(const Variables& variables, std::string_view name) {
  return std::ranges::find(variables, name, &Variables::value_type::first) != variables.end();
}

}  // namespace

ChatPrompt chat_prompt(const ChatRequest& request) {
  ChatPrompt prompt{request.messages, {}, request.variables};
  if (has_tools(request))
    for (const Tool& tool : request.tools) prompt.tools.push_back(tool_value(tool));
  return prompt;
}

Prompt render_chat(const ChatRequest& request, const Services& services) {
  if (has_tools(request) && services.frontend.call_format() == text::CallFormat::kNone)
    unsupported_field("tools", "the chat template of this model has no place for tools");
  try {
    return services.frontend.chat(chat_prompt(request), [&](size_t n_bytes) {
      refuse_too_long(n_bytes, request.fields.max_tokens, services);
    });
  } catch (const RequestError&) {
    throw;
  } catch (const Error& e) {
    // What the template raises concerns the messages.
    if (e.code() != ErrorCode::kInvalidArgument) throw;
    refuse_field(request.messages_path, e.what());
  }
}

Generation make_chat(ChatRequest&& request, std::unique_ptr<AnswerShape> shape,
                     const Services& services) {
  Prompt prompt = render_chat(request, services);
  const text::CallFormat calls = services.frontend.call_format();
  std::string grammar = answer_grammar(request, calls);
  Generation result =
      make_generation(std::move(prompt.ids), std::move(request.fields), std::move(shape), services);
  result.submit.boundaries = std::move(prompt.boundaries);
  // Templates leave an empty line behind the reasoning.
  if (!grammar.empty() && prompt.in_reasoning)
    grammar.replace(0, std::string_view("root ::= ").size(),
                    "root ::= \"\\n\"{0,2} answer\nanswer ::= ");
  result.grammar_path = request.grammar_path.empty() ? "tools" : request.grammar_path;
  // Each part keeps to the limit; the engine reads all in one.
  if (const size_t limit = text::GrammarLimits{}.max_source_bytes; grammar.size() > limit)
    throw RequestError(ErrorCode::kUnsupported,
                       format("{}: the form of the answer and the tools together make a grammar of "
                              "{} bytes, the limit is {}",
                              result.grammar_path, grammar.size(), limit),
                       result.grammar_path);
  result.submit.grammar = std::move(grammar);
  wire::Reasoning reasoning{prompt.in_reasoning, kThinkOpen, kThinkClose, -1, {}};
  if (request.reasoning_budget) {
    reasoning.budget = *request.reasoning_budget;
    reasoning.wrap_up = services.frontend.encode(kWrapUp, true);
  }
  result.submit.reasoning = std::move(reasoning);
  result.format.split_reasoning = true;
  result.format.in_reasoning = prompt.in_reasoning;
  if (has_tools(request)) {
    result.format.calls = calls;
    result.format.tools = std::make_shared<const Tools>(std::move(request.tools));
  }
  return result;
}

void add_variable(Variables& variables, const std::string& path, const std::string& name,
                  text::Value value) {
  if (has_variable(variables, name)) refuse_field(path, "is given twice");
  variables.emplace_back(name, std::move(value));
}

void add_effort(Variables& variables, const std::string& path, const std::string& effort) {
  bool known = false;
  for (const char* word : {"none", "minimal", "low", "medium", "high", "xhigh"})
    known = known || effort == word;
  if (!known) refuse_field(path, "must be none, minimal, low, medium, high or xhigh");
  add_variable(variables, path, "reasoning_effort", text::Value::content(effort));
  if (!has_variable(variables, "enable_thinking"))
    add_variable(variables, path, "enable_thinking", text::Value::boolean(effort != "none"));
}

Variables read_variables(const Fields& body) {
  Variables result;
  if (const Json* map = body.object("chat_template_kwargs")) {
    const Fields fields(*map, body.path("chat_template_kwargs"));
    for (const auto& [name, value] : map->items()) {
      for (const char* ours :
           {"messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"})
        if (name == ours) refuse_field(fields.path(name), "is not the client's to set");
      if (text::ChatTemplate::is_function(name))
        refuse_field(fields.path(name), "is the name of a function of chat templates");
      check_variable(fields.path(name), value, name == "enable_thinking");
      add_variable(result, fields.path(name), name, to_value(value));
    }
  }
  if (const auto thinking = body.boolean("enable_thinking"))
    add_variable(result, body.path("enable_thinking"), "enable_thinking",
                 text::Value::boolean(*thinking));
  if (const auto effort = body.string("reasoning_effort"))
    add_effort(result, body.path("reasoning_effort"), *effort);
  return result;
}

void ask_for_json(ChatRequest& request, const Json* schema, const std::string& path) {
  const text::Grammar grammar =
      schema == nullptr ? text::json_object_grammar() : json_schema_grammar(*schema, path);
  request.grammar = written(grammar, path, "");
  request.grammar_path = path;
}

void read_grammar_fields(const Fields& body, ChatRequest& request) {
  const auto set = [&](const char* name, const auto& make) {
    const auto text = body.string(name);
    if (!text) return;
    if (!request.grammar.empty())
      refuse_field(body.path(name), format("{} asks for a form already", request.grammar_path));
    try {
      request.grammar = written(make(*text), body.path(name), format(" of {} bytes", text->size()));
    } catch (const RequestError&) {
      throw;
    } catch (const Error& e) {
      throw RequestError(e.code(), format("{}: {}", body.path(name), e.message()), body.path(name));
    }
    request.grammar_path = body.path(name);
  };
  set("grammar", [](const std::string& text) { return text::parse_gbnf(text); });
  set("regex", [](const std::string& text) { return text::regex_grammar(text); });
}

}  // namespace strata::server
