#include "strata/server/answer/call_grammar.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/server/answer/call_parser.h"
#include "strata/server/json_schema.h"
#include "strata/text/grammar/gbnf_writer.h"
#include "strata/text/grammar/json_text.h"

namespace strata::server {
namespace {

using text::gbnf_literal;

enum class Until {
  kHere,   // up to and with it
  kNever,  // without it
};

// Rules for any text in which `end` does not come but, with kHere, as its end; the first character
// of `end` does not come again in it. A state for each character of it that has come.
std::string text_until(std::string_view end, Until until, const std::string& name) {
  const auto state = [&](size_t n) { return n == 0 ? name : format("{}-{}", name, n); };
  const auto one_but = [](std::string_view characters) {
    std::string set = "[^";
    for (const char c : characters) set += format("\\x{:02X}", static_cast<unsigned>(c));
    return set + "]";
  };
  std::string rules;
  for (size_t n = 0; n < end.size(); ++n) {
    const std::string_view next = end.substr(n, 1), first = end.substr(0, 1);
    const bool last = n + 1 == end.size();
    rules += format("{} ::= {} {}", state(n),
                    one_but(n > 0 ? std::string(next).append(first) : next), state(0));
    if (n > 0) rules += format(" | {} {}", gbnf_literal(first), state(1));
    if (!last) rules += format(" | {} {}", gbnf_literal(next), state(n + 1));
    if (last && until == Until::kHere) rules += " | " + gbnf_literal(next);
    rules += until == Until::kNever ? " | ()\n" : "\n";
  }
  return rules;
}

class CallRules {
 public:
  CallRules(const Tools& tools, const CallGrammar& how, std::string_view prefix)
      : how_(how), prefix_(prefix) {
    std::string calls;
    for (size_t i = 0; i < tools.size(); ++i) {
      calls += (i == 0 ? "" : " | ") + rule(format("t{}", i));
      const std::string path = format("tools[{}].function.parameters", i);
      if (how.format == text::CallFormat::kXml)
        xml_call(tools[i], i, path);
      else
        json_call(tools[i], i, path);
    }
    rules_ += format("{} ::= \"\\n\" ({}) {}\n", rule("body"), calls, gbnf_literal(kCallClose));
    rules_ += format("{} ::= {} {}\n", rule("call"), gbnf_literal(kCallOpen), rule("body"));
    rules_ += format("{} ::= {}\n", rule("more"),
                     how.parallel ? format("(\"\\n\" {})*", rule("call")) : "()");
  }

  std::string rule(const std::string& name) const { return prefix_ + name; }
  std::string take() { return std::move(rules_); }

 private:
  // The rules of a schema, and the name of its root.
  std::string schema(const Json& schema, const std::string& path, bool strict, bool object) {
    const std::string name = rule(format("s{}-", n_schemas_++));
    text::Grammar grammar = object ? text::json_object_grammar() : text::json_value_grammar();
    try {
      grammar = json_schema_grammar(schema, path);
    } catch (const Error&) {
      if (strict) throw;
    }
    rules_ += to_gbnf(grammar, name);
    return name + "root";
  }

  void json_call(const Tool& tool, size_t i, const std::string& path) {
    const std::string arguments = schema(*tool.parameters, path, tool.strict, true);
    const std::string head = "{\"name\": " + dump(Json(tool.name)) + ", \"arguments\": ";
    rules_ += format("{} ::= {} {} {}\n", rule(format("t{}", i)), gbnf_literal(head), arguments,
                     gbnf_literal("}\n"));
  }

  void xml_call(const Tool& tool, size_t i, const std::string& path) {
    std::string body = gbnf_literal("<function=" + tool.name + ">\n");
    const Json& parameters = *tool.parameters;
    std::set<std::string> required;
    if (const auto names = parameters.find("required");
        names != parameters.end() && names->is_array())
      for (const Json& name : *names)
        if (name.is_string()) required.insert(name.get<std::string>());
    const auto properties = parameters.find("properties");
    if (properties != parameters.end() && properties->is_object()) {
      for (const auto& [name, value] : properties->items()) {
        const std::string one = parameter(tool, name, value, path + ".properties." + name);
        body += required.count(name) > 0 ? " " + one : format(" ({})?", one);
      }
    }
    rules_ += format("{} ::= {} {}\n", rule(format("t{}", i)), body, gbnf_literal("</function>\n"));
  }

  std::string parameter(const Tool& tool, const std::string& name, const Json& value,
                        const std::string& path) {
    const std::string head = gbnf_literal("<parameter=" + name + ">\n");
    const std::string end = "\n</parameter>\n";
    const ParameterTypes types = parameter_types(tool, name);
    if (types.string) {
      if (const std::string words = only_words(value); !words.empty())
        return format("{} ({}) {}", head, words, gbnf_literal(end));
      if (const std::string held = types.other ? "" : held_text(tool, value, path); !held.empty())
        return format("{} {} {}", head, held, gbnf_literal(end));
      return format("{} {} {} \"\\n\"", head, types.other ? "" : first_characters(value),
                    any_text());
    }
    return format("{} {} {}", head,
                  schema(with_definitions(*tool.parameters, value), path, tool.strict, false),
                  gbnf_literal(end));
  }

  // The strings of an enum; none if it is something else.
  static std::string only_words(const Json& value) {
    if (!value.is_object()) return "";
    const auto words = value.find("enum");
    if (words == value.end() || !words->is_array()) return "";
    std::string text;
    for (const Json& word : *words) {
      if (!word.is_string()) return "";
      text += (text.empty() ? "" : " | ") + gbnf_literal(word.get<std::string>());
    }
    return text;
  }

  // A rule of the strings that the schema allows; empty: it does not hold them, or cannot be held
  // to and need not.
  std::string held_text(const Tool& tool, const Json& value, const std::string& path) {
    // Beyond, a grammar would be refused by the engine that compiles it.
    constexpr int kMostCounted = 4096;
    if (!tool.strict && value.is_object())
      if (const auto max = value.find("maxLength");
          max != value.end() && max->is_number() && *max > kMostCounted)
        return "";
    try {
      const auto grammar =
          json_schema_line_grammar(with_definitions(*tool.parameters, value), path);
      if (!grammar) return "";
      const std::string name = rule(format("s{}-", n_schemas_++));
      rules_ += to_gbnf(*grammar, name);
      return name + "root";
    } catch (const Error&) {
      if (tool.strict) throw;
    }
    return "";
  }

  // As many as a text has to have at the least.
  static std::string first_characters(const Json& value) {
    constexpr int kMost = 1024;
    if (!value.is_object()) return "";
    const auto min = value.find("minLength");
    if (min == value.end() || !min->is_number_integer() || *min < 1 || *min > kMost) return "";
    return format("[^\\n]{{{}}}", min->get<int>());
  }

  // References lead into the schema of the whole tool.
  static Json with_definitions(const Json& parameters, Json value) {
    for (const char* name : {"$defs", "definitions"})
      if (const auto found = parameters.find(name); found != parameters.end() && value.is_object())
        value[name] = *found;
    return value;
  }

  std::string any_text() {
    if (!std::exchange(has_text_, true))
      rules_ += text_until("\n</parameter>", Until::kHere, rule("text"));
    return rule("text");
  }

  const CallGrammar how_;
  const std::string prefix_;
  std::string rules_;
  int n_schemas_ = 0;
  bool has_text_ = false;
};

}  // namespace

std::string calls_gbnf(const Tools& tools, const CallGrammar& how, std::string_view prefix) {
  CallRules rules(tools, how, prefix);
  return format("{} ::= {} {}\n", rules.rule("root"), rules.rule("call"), rules.rule("more")) +
         rules.take();
}

std::string text_and_calls_gbnf(const Tools& tools, const CallGrammar& how,
                                std::string_view prefix) {
  CallRules rules(tools, how, prefix);
  // The text up to a call takes the tag that opens it with it, so that no other call can come.
  return format("{} ::= {} | {} {} {}\n", rules.rule("root"), rules.rule("plain"),
                rules.rule("lead"), rules.rule("body"), rules.rule("more")) +
         rules.take() + text_until(kCallOpen, Until::kHere, rules.rule("lead")) +
         text_until(kCallOpen, Until::kNever, rules.rule("plain"));
}

}  // namespace strata::server
