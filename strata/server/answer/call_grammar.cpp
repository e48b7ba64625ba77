#include "strata/server/answer/call_grammar.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/text.h"
#include "strata/server/answer/call_parser.h"
#include "strata/server/json_schema.h"
#include "strata/server/request_error.h"
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

// Why a parameter cannot be called so, or nothing: what the name is read back by.
const char* objection_to(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.size() > kMaxCallName) return "is too long";
  if (name.find_first_of("<>\n") != std::string_view::npos) return "holds < or > or a line end";
  if (trimmed(name).size() != name.size()) return "begins or ends with white space";
  return nullptr;
}

// "~0" and "~1" as JSON pointers have them.
std::string pointer_to_property(std::string_view name) {
  std::string pointer = "/properties/";
  for (const char c : name) {
    if (c == '~' || c == '/')
      pointer += c == '~' ? "~0" : "~1";
    else
      pointer += c;
  }
  return pointer;
}

class CallRules {
 public:
  CallRules(const Tools& tools, const CallGrammar& how, std::string_view prefix)
      : how_(how), prefix_(prefix), budget_(schema_budget()) {
    std::string calls;
    for (size_t i = 0; i < tools.size(); ++i) {
      calls += (i == 0 ? "" : " | ") + rule(format("t{}", i));
      const std::string path = format("tools[{}].function.parameters", i);
      try {
        if (how.format == text::CallFormat::kXml)
          xml_call(tools[i], i, path);
        else
          json_call(tools[i], i, path);
      } catch (const RequestError&) {
        throw;
      } catch (const Error& e) {
        throw RequestError(e.code(), format("the tool {}: {}", tools[i].name, e.message()), path);
      }
    }
    add(format("{} ::= \"\\n\" ({}) {}\n", rule("body"), calls, gbnf_literal(kCallClose)));
    add(format("{} ::= {} {}\n", rule("call"), gbnf_literal(kCallOpen), rule("body")));
    add(format("{} ::= {}\n", rule("more"),
               how.parallel ? format("(\"\\n\" {})*", rule("call")) : "()"));
  }

  std::string rule(const std::string& name) const { return prefix_ + name; }
  std::string take() { return std::move(rules_); }

 private:
  // What is read back may not be longer, and tools come from a request: many small ones, or a few
  // whose schemas say much in few words, must not make it so.
  void add(std::string_view rules) {
    if (rules_.size() + rules.size() > limits_.max_source_bytes)
      throw Error(
          ErrorCode::kUnsupported,
          format("the grammar of the calls takes more than {} bytes; fewer tools, or simpler "
                 "schemas, help",
                 limits_.max_source_bytes));
    rules_ += rules;
  }

  // The rules of schemas inside one, and the name of each; empty where a text is not held.
  std::vector<std::string> schemas(const Json& root, const std::string& path,
                                   std::span<const SchemaPart> parts, const std::string& name) {
    const SchemaRules made = json_schema_rules(root, path, parts, limits_, budget_);
    // Also what is not written costs time.
    limits_.max_size -= std::min(limits_.max_size, made.grammar.size());
    std::vector<text::RuleId> rules;
    std::vector<std::string> names;
    for (const std::optional<text::RuleId>& each : made.parts) {
      names.push_back(each ? gbnf_rule(made.grammar, name, *each) : "");
      if (each) rules.push_back(*each);
    }
    if (!rules.empty()) add(to_gbnf(made.grammar, name, rules));
    return names;
  }

  void json_call(const Tool& tool, size_t i, const std::string& path) {
    Json object = *tool.parameters;
    // Arguments are an object, also where the schema leaves it open.
    if (object.is_object() && !object.contains("type") && !has_form(object))
      object["type"] = "object";
    const SchemaPart whole{"", &object, path,
                           tool.strict ? Otherwise::kRefuse : Otherwise::kAnyObject};
    const std::string arguments =
        schemas(object, path, {&whole, 1}, rule(format("s{}-", i))).front();
    const std::string head = "{\"name\": " + dump(Json(tool.name)) + ", \"arguments\": ";
    add(format("{} ::= {} {} {}\n", rule(format("t{}", i)), gbnf_literal(head), arguments,
               gbnf_literal("}\n")));
  }

  static bool has_form(const Json& schema) {
    return std::ranges::any_of(std::array{"$ref", "enum", "const", "anyOf", "oneOf", "allOf"},
                               [&](const char* form) { return schema.contains(form); });
  }

  void xml_call(const Tool& tool, size_t i, const std::string& path) {
    const Json& parameters = *tool.parameters;
    std::set<std::string_view> required, known;
    if (const auto names = parameters.find("required");
        names != parameters.end() && names->is_array())
      for (const Json& name : *names)
        if (name.is_string()) required.insert(name.get_ref<const std::string&>());
    const auto properties = parameters.find("properties");
    const bool has_properties =
        properties != parameters.end() && properties->is_object() && !properties->empty();
    std::vector<Parameter> members;
    if (has_properties) {
      for (const auto& [name, value] : properties->get_ref<const Json::object_t&>()) {
        members.push_back({name, &value, required.contains(name)});
        known.insert(name);
      }
    }
    for (const std::string_view name : required)
      if (!known.contains(name)) members.push_back({name, nullptr, true});
    std::string body = gbnf_literal("<function=" + tool.name + ">\n");
    body += parameter_list(tool, i, members, path);
    if (!has_properties && is_free(parameters)) body += format(" ({})*", any_parameter());
    add(format("{} ::= {} {}\n", rule(format("t{}", i)), body, gbnf_literal("</function>\n")));
  }

  // Whether an object may have members that its schema does not name; a tool without any schema
  // takes no arguments.
  static bool is_free(const Json& parameters) {
    const auto extra = parameters.find("additionalProperties");
    if (extra != parameters.end()) return !(extra->is_boolean() && !extra->get<bool>());
    return !parameters.empty() && !parameters.contains("properties");
  }

  struct Parameter {
    std::string_view name;
    const Json* schema;  // null: it is asked for and not described
    bool required;
  };

  std::string parameter_list(const Tool& tool, size_t i, std::span<const Parameter> members,
                             const std::string& path) {
    std::vector<Value> values;
    std::vector<SchemaPart> parts;
    for (const Parameter& each : members) {
      const std::string where = path + ".properties." + std::string(each.name.substr(0, 60));
      if (const char* why = objection_to(each.name))
        refuse_field(where, format("a name that {} cannot be called with this model", why));
      values.push_back(value_of(tool, each));
      if (values.back().by_schema)
        parts.push_back({pointer_to_property(each.name), each.schema, where,
                         tool.strict ? Otherwise::kRefuse : Otherwise::kAnyValue,
                         values.back().types.string});
    }
    std::vector<std::string> rules;
    if (!parts.empty()) rules = schemas(*tool.parameters, path, parts, rule(format("s{}-", i)));
    std::string list;
    auto next = rules.begin();
    for (size_t k = 0; k < members.size(); ++k) {
      const std::string held = values[k].by_schema ? *next++ : values[k].words;
      const std::string one =
          gbnf_literal(format("<parameter={}>\n", members[k].name)) + " " +
          (held.empty() ? free_text(values[k].types, members[k].schema)
                        : format("{} {}", held, gbnf_literal("\n</parameter>\n")));
      list += members[k].required ? " " + one : format(" ({})?", one);
    }
    return list;
  }

  // How a value is held to its schema.
  struct Value {
    ParameterTypes types;
    std::string words;       // one of these
    bool by_schema = false;  // by rules of the schema; else any text
  };

  Value value_of(const Tool& tool, const Parameter& parameter) {
    size_t n_schemas = 0;
    Value value{types_of(tool, parameter.schema, &n_schemas), "", false};
    // To follow a reference is to look at the names there are.
    size_t n_names = 0;
    for (const char* name : {"$defs", "definitions"})
      if (const auto found = tool.parameters->find(name); found != tool.parameters->end())
        n_names += found->size();
    budget_.spend((1 + n_schemas) * (1 + n_names / 4));
    if (!value.types.string) {
      value.by_schema = true;
    } else if (parameter.schema != nullptr) {
      if (const std::string words = only_words(*parameter.schema); !words.empty())
        value.words = "(" + words + ")";
      else
        value.by_schema = !value.types.other && is_countable(tool, *parameter.schema);
    }
    return value;
  }

  // Beyond, a grammar would be refused by the engine that compiles it.
  static bool is_countable(const Tool& tool, const Json& schema) {
    constexpr int kMostCounted = 4096;
    if (tool.strict || !schema.is_object()) return true;
    const auto max = schema.find("maxLength");
    return max == schema.end() || !max->is_number() || *max <= kMostCounted;
  }

  std::string free_text(const ParameterTypes& types, const Json* schema) {
    const bool counts = schema != nullptr && !types.other;
    return format("{} {} \"\\n\"", counts ? first_characters(*schema) : "", any_text());
  }

  // As many as a text has to have at the least.
  static std::string first_characters(const Json& value) {
    constexpr int kMost = 1024;
    if (!value.is_object()) return "";
    const auto min = value.find("minLength");
    if (min == value.end() || !min->is_number_integer() || *min < 1 || *min > kMost) return "";
    return format("[^\\n]{{{}}}", min->get<int>());
  }

  // The strings of an enum; none if it is something else.
  static std::string only_words(const Json& value) {
    if (!value.is_object()) return "";
    const auto words = value.find("enum");
    if (words == value.end() || !words->is_array()) return "";
    std::string text;
    for (const Json& word : *words) {
      if (!word.is_string()) return "";
      text += (text.empty() ? "" : " | ") + gbnf_literal(word.get_ref<const std::string&>());
    }
    return text;
  }

  std::string any_text() {
    if (!std::exchange(has_text_, true))
      add(text_until("\n</parameter>", Until::kHere, rule("text")));
    return rule("text");
  }

  std::string any_parameter() {
    const std::string text = any_text();
    if (!std::exchange(has_parameter_, true))
      add(format("{} ::= \"<parameter=\" [^<>\\x00-\\x20]{{1,64}} \">\\n\" {} \"\\n\"\n",
                 rule("any"), text));
    return rule("any");
  }

  const CallGrammar how_;
  const std::string prefix_;
  text::WorkBudget budget_;
  text::GrammarLimits limits_;  // max_size: what is left of it
  std::string rules_;
  bool has_text_ = false;
  bool has_parameter_ = false;
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
