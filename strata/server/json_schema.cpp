#include "strata/server/json_schema.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "strata/base/format.h"
#include "strata/server/fields.h"
#include "strata/server/json_schema_compiler.h"
#include "strata/server/request_error.h"
#include "strata/text/utf8.h"

namespace strata::server {
namespace {

// Keywords that constrain whatever the type.
constexpr std::string_view kForms[] = {"$ref", "enum", "const", "anyOf", "oneOf", "allOf"};

// Keywords that constrain nothing.
constexpr std::string_view kNotes[] = {
    "$schema",      "$id",      "$anchor",   "$comment",        "$defs",
    "definitions",  "title",    "default",   "examples",        "description",
    "deprecated",   "readOnly", "writeOnly", "contentEncoding", "contentMediaType",
    "contentSchema"};

// Looking up, comparing and naming what a schema holds; far above what a schema of some thousand
// names takes, and well below a second.
constexpr size_t kMaxWork = 10'000'000;

template <class List>
bool holds(const List& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

std::string in_quotes(std::string_view name) { return "\"" + shown(name) + "\""; }

}  // namespace

std::string shown(std::string_view name) {
  constexpr size_t kShown = 60;
  if (name.size() <= kShown) return std::string(name);
  const std::string_view front = name.substr(0, kShown);
  return std::string(front.substr(0, text::valid_utf8_prefix(front))) + "...";
}

text::RuleId SchemaCompiler::rule_of(const std::string& pointer, const Json& schema,
                                     std::string path, Otherwise otherwise) {
  const auto [found, is_new] = rules_.try_emplace(pointer);
  if (is_new) {
    found->second = grammar_.add_rule(pointer.empty() ? "root" : shown(pointer));
    todo_.push_back({found->second, &schema, std::move(path), otherwise});
  }
  return found->second;
}

std::optional<text::RuleId> SchemaCompiler::text_rule(const SchemaPart& part) {
  const std::optional<Node> text = text_of(part);
  if (!text) return std::nullopt;
  const text::RuleId rule = grammar_.add_rule(shown(part.pointer));
  grammar_.define(rule, *text);
  return rule;
}

std::optional<text::GrammarNodeId> SchemaCompiler::text_of(const SchemaPart& part) {
  try {
    const Json* schema = part.schema;
    std::string path = part.path;
    constexpr int kMostReferences = 8;
    for (int n = 0; n < kMostReferences && member(*schema, "$ref") != nullptr; ++n) {
      path += ".$ref";
      schema = &tree_.resolve(*member(*schema, "$ref"), path);
    }
    const auto has = [&](std::string_view name) { return member(*schema, name) != nullptr; };
    if (!has("pattern") && !has("format") && !has("maxLength")) return std::nullopt;
    if (std::ranges::any_of(kForms, has)) return std::nullopt;
    check_keywords(*schema, path);
    return characters(*schema, path, false);
  } catch (const RequestError&) {
    if (part.otherwise == Otherwise::kRefuse) throw;
    return std::nullopt;
  }
}

text::Grammar SchemaCompiler::run() {
  while (!todo_.empty()) {
    const Todo next = std::move(todo_.front());
    todo_.pop_front();
    grammar_.define(next.rule, body(next));
  }
  return std::move(grammar_);
}

text::GrammarNodeId SchemaCompiler::body(const Todo& todo) {
  otherwise_ = todo.otherwise;
  if (todo.otherwise == Otherwise::kRefuse) return compile(*todo.schema, todo.path);
  try {
    return compile(*todo.schema, todo.path);
  } catch (const RequestError&) {
    // Of the schema; that a limit was reached is told in any case.
    return todo.otherwise == Otherwise::kAnyObject ? any_object() : any_value();
  }
}

text::GrammarNodeId SchemaCompiler::as_rule(const std::string& name, Node node) {
  constexpr size_t kShown = 100;  // its end tells more than its beginning
  const text::RuleId rule =
      grammar_.add_rule(name.size() > kShown ? name.substr(name.size() - kShown) : name);
  grammar_.define(rule, node);
  return grammar_.reference(rule);
}

text::GrammarNodeId SchemaCompiler::any_value() {
  if (!any_) any_ = text::add_json_rules(grammar_);
  return grammar_.reference(any_->value);
}

text::GrammarNodeId SchemaCompiler::any_object() {
  any_value();
  return grammar_.reference(any_->object);
}

text::GrammarNodeId SchemaCompiler::compile(const Json& schema, const std::string& path) {
  if (schema.is_boolean()) {
    if (schema.get<bool>()) return any_value();
    refuse_field(path, "is false: no value can match");
  }
  if (!schema.is_object()) {
    refuse_field(path, format("a schema must be an object, not {}", kind_of(schema)));
  }
  tree_.budget().spend(1 + path.size() / 16);
  check_keywords(schema, path);
  std::string_view form;
  for (const std::string_view name : kForms) {
    if (member(schema, name) == nullptr) continue;
    if (!form.empty()) unsupported_field(path, format("{} beside {} is not supported", name, form));
    form = name;
  }
  if (form.empty()) return of_types(schema, path);
  for (const TypeKeyword& keyword : kTypeKeywords) {
    if (member(schema, keyword.name) == nullptr) continue;
    unsupported_field(path, format("{} beside {} is not supported", keyword.name, form));
  }
  const bool finite = form == "enum" || form == "const";
  if (!finite && member(schema, "type") != nullptr) {
    unsupported_field(path, format("type beside {} is not supported", form));
  }
  const std::string inner = path + "." + std::string(form);
  if (form == "$ref") return reference(*member(schema, form), inner);
  if (finite) return one_of_values(schema, path);
  return combination(*member(schema, form), form, inner);
}

void SchemaCompiler::check_keywords(const Json& schema, const std::string& path) const {
  for (const auto& item : schema.items()) {
    const std::string& name = item.key();
    const bool known =
        name == "type" || holds(kForms, name) || holds(kNotes, name) ||
        std::any_of(std::begin(kTypeKeywords), std::end(kTypeKeywords),
                    [&](const TypeKeyword& keyword) { return keyword.name == name; });
    if (!known) unsupported_field(path, format("the keyword {} is not supported", in_quotes(name)));
  }
}

text::GrammarNodeId SchemaCompiler::reference(const Json& value, const std::string& path) {
  const Json& target = tree_.resolve(value, path);
  const auto pointer = value.get<std::string>().substr(1);
  const bool strict = otherwise_ == Otherwise::kRefuse;
  return grammar_.reference(rule_of(pointer, target, tree_.path_of(pointer),
                                    strict ? Otherwise::kRefuse : Otherwise::kAnyValue));
}

text::GrammarNodeId SchemaCompiler::combination(const Json& list, std::string_view form,
                                                const std::string& path) {
  if (!list.is_array() || list.empty()) refuse_field(path, "must be a list of schemas");
  if (form == "allOf" && list.size() > 1) {
    unsupported_field(path, "more than one schema is not supported");
  }
  if (form == "oneOf") check_disjoint(list, path);
  Nodes ways;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_boolean() && !list[i].get<bool>() && list.size() > 1) continue;
    ways.push_back(compile(list[i], format("{}[{}]", path, i)));
  }
  return grammar_.alternatives(ways);
}

void SchemaCompiler::check_disjoint(const Json& list, const std::string& path) {
  constexpr size_t kMaxAlternatives = 200;  // pairs are compared
  if (list.size() > kMaxAlternatives) {
    unsupported_field(path, format("more than {} schemas are not supported", kMaxAlternatives));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (tree_.disjoint(list[k], list[i], path)) continue;
      unsupported_field(path, format("the schemas {} and {} are not seen to exclude each other; "
                                     "use anyOf",
                                     k, i));
    }
  }
}

text::GrammarNodeId SchemaCompiler::one_of_values(const Json& schema, const std::string& path) {
  const std::optional<SchemaTree::Values> values = tree_.values_of(schema);
  if (!values || values->empty()) refuse_field(path + ".enum", "must be a list of values");
  const unsigned types =
      member(schema, "type") == nullptr ? kAnyType : tree_.types_of(schema, path);
  Nodes ways;
  for (const Json* const value : *values) {
    if ((type_of(*value) & types) != 0) ways.push_back(literal(*value));
  }
  if (ways.empty()) refuse_field(path, "no value of the list is of the type");
  return grammar_.alternatives(ways);
}

text::GrammarNodeId SchemaCompiler::literal(const Json& value) {
  if (!value.is_structured() || value.empty()) return grammar_.literal(dump(value));
  const bool is_object = value.is_object();
  Nodes parts{grammar_.literal(is_object ? "{" : "[")};
  for (const auto& [key, item] : value.items()) {
    if (parts.size() > 1) parts.push_back(separator(','));
    if (is_object) {
      parts.push_back(grammar_.literal(dump(Json(key))));
      parts.push_back(separator(':'));
    }
    parts.push_back(literal(item));
  }
  parts.push_back(grammar_.literal(is_object ? "}" : "]"));
  return grammar_.sequence(parts);
}

text::GrammarNodeId SchemaCompiler::of_types(const Json& schema, const std::string& path) {
  const unsigned types = tree_.types_of(schema, path);
  if (types == kAnyType && !tree_.speaks_of_types(schema)) return any_value();
  Nodes ways;
  if ((types & kObject) != 0) ways.push_back(object(schema, path));
  if ((types & kArray) != 0) ways.push_back(array(schema, path));
  if ((types & kString) != 0) ways.push_back(string(schema, path));
  if ((types & kNumber) != 0) {
    ways.push_back(number(schema, path, (types & kNumber) == kInteger));
  }
  if ((types & kBoolean) != 0) {
    ways.push_back(grammar_.alternatives({grammar_.literal("true"), grammar_.literal("false")}));
  }
  if ((types & kNull) != 0) ways.push_back(grammar_.literal("null"));
  return grammar_.alternatives(ways);
}

text::WorkBudget schema_budget() {
  return text::WorkBudget(kMaxWork,
                          "the schema is too complex: it would take too long to read; fewer names, "
                          "values and alternatives help");
}

SchemaRules json_schema_rules(const Json& root, std::string_view path,
                              std::span<const SchemaPart> parts, const text::GrammarLimits& limits,
                              text::WorkBudget& budget) {
  try {
    SchemaCompiler compiler(root, path, limits, budget);
    std::vector<std::optional<text::RuleId>> rules;
    for (const SchemaPart& part : parts) {
      rules.push_back(
          part.as_text ? compiler.text_rule(part)
                       : compiler.rule_of(part.pointer, *part.schema, part.path, part.otherwise));
    }
    return {compiler.run(), std::move(rules)};
  } catch (const RequestError&) {
    throw;
  } catch (const Error& e) {
    throw RequestError(e.code(), e.message(), std::string(path));
  }
}

text::Grammar json_schema_grammar(const Json& schema, std::string_view path) {
  text::WorkBudget budget = schema_budget();
  const SchemaPart whole{"", &schema, std::string(path), Otherwise::kRefuse};
  return json_schema_rules(schema, path, {&whole, 1}, {}, budget).grammar;
}

}  // namespace strata::server
