#include "strata/server/json_schema.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "strata/base/format.h"
#include "strata/server/fields.h"
#include "strata/server/json_numbers.h"
#include "strata/server/json_schema_formats.h"
#include "strata/server/request_error.h"
#include "strata/text/code_points.h"
#include "strata/text/grammar/json_text.h"
#include "strata/text/grammar/regex.h"

namespace strata::server {
namespace {

using text::CodePointRanges;
using text::Grammar;
using text::GrammarNodeId;
using text::kUnbounded;
using text::RuleId;

using Nodes = std::vector<GrammarNodeId>;
using Values = std::vector<const Json*>;

// The types of JSON Schema as bits; a number may be an integer.
enum TypeBit : unsigned {
  kNull = 1,
  kBoolean = 2,
  kObject = 4,
  kArray = 8,
  kString = 16,
  kInteger = 32,
  kFraction = 64,  // a number that is no integer
};
constexpr unsigned kNumber = kInteger | kFraction;
constexpr unsigned kAnyType = 127;

// Of strings in calls: names and words are this short, and texts with several lines longer.
constexpr int kMostOfLine = 256;

struct TypeName {
  std::string_view name;
  unsigned bits;
};
constexpr TypeName kTypes[] = {{"null", kNull},    {"boolean", kBoolean}, {"object", kObject},
                               {"array", kArray},  {"string", kString},   {"integer", kInteger},
                               {"number", kNumber}};

// Keywords that say something about one type, and what that is.
struct Keyword {
  std::string_view name;
  unsigned type;
};
constexpr Keyword kTypeKeywords[] = {{"properties", kObject},
                                     {"required", kObject},
                                     {"additionalProperties", kObject},
                                     {"items", kArray},
                                     {"prefixItems", kArray},
                                     {"minItems", kArray},
                                     {"maxItems", kArray},
                                     {"uniqueItems", kArray},
                                     {"minLength", kString},
                                     {"maxLength", kString},
                                     {"pattern", kString},
                                     {"format", kString},
                                     {"minimum", kNumber},
                                     {"maximum", kNumber},
                                     {"exclusiveMinimum", kNumber},
                                     {"exclusiveMaximum", kNumber},
                                     {"multipleOf", kNumber}};

// Keywords that constrain whatever the type.
constexpr std::string_view kForms[] = {"$ref", "enum", "const", "anyOf", "oneOf", "allOf"};

// Keywords that constrain nothing.
constexpr std::string_view kNotes[] = {
    "$schema",      "$id",      "$anchor",   "$comment",        "$defs",
    "definitions",  "title",    "default",   "examples",        "description",
    "deprecated",   "readOnly", "writeOnly", "contentEncoding", "contentMediaType",
    "contentSchema"};

template <class List>
bool holds(const List& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

const Json* member(const Json& schema, std::string_view name) {
  if (!schema.is_object()) return nullptr;
  const auto found = schema.find(std::string(name));
  return found == schema.end() ? nullptr : &*found;
}

unsigned type_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::boolean:
      return kBoolean;
    case Json::value_t::object:
      return kObject;
    case Json::value_t::array:
      return kArray;
    case Json::value_t::string:
      return kString;
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return kInteger;
    case Json::value_t::number_float:
      return std::floor(value.get<double>()) == value.get<double>() ? kInteger : kFraction;
    default:
      return kNull;
  }
}

class SchemaCompiler {
 public:
  SchemaCompiler(const Json& root, std::string_view path) : root_(root), root_path_(path) {}

  Grammar run() {
    rule_of("", root_, root_path_);
    while (!todo_.empty()) {
      const Todo next = todo_.front();
      todo_.pop_front();
      grammar_.define(next.rule, compile(*next.schema, next.path));
    }
    return std::move(grammar_);
  }

  std::optional<Grammar> line() {
    const Json* schema = &root_;
    std::string path = root_path_;
    constexpr int kMostReferences = 8;
    for (int n = 0; n < kMostReferences && member(*schema, "$ref") != nullptr; ++n) {
      path += ".$ref";
      schema = &resolve(*member(*schema, "$ref"), path);
    }
    const auto has = [&](std::string_view name) { return member(*schema, name) != nullptr; };
    if (!has("pattern") && !has("format") && !has("maxLength")) return std::nullopt;
    if (std::ranges::any_of(kForms, has)) return std::nullopt;
    check_keywords(*schema, path);
    const RuleId root = grammar_.add_rule("root");
    grammar_.define(root, characters(*schema, path, false));
    return std::move(grammar_);
  }

 private:
  struct Todo {
    RuleId rule;
    const Json* schema;
    std::string path;
  };

  // The rule of the schema that a JSON pointer names; it is compiled later, so that references may
  // form cycles and nothing recurses deeper than the schema is written.
  RuleId rule_of(const std::string& pointer, const Json& schema, std::string path) {
    const auto [found, is_new] = rules_.try_emplace(pointer);
    if (is_new) {
      found->second = grammar_.add_rule(pointer.empty() ? "root" : pointer);
      todo_.push_back({found->second, &schema, std::move(path)});
    }
    return found->second;
  }

  // A node as a rule of its own, which takes its depth out of the nodes around it.
  GrammarNodeId as_rule(std::string name, GrammarNodeId node) {
    const RuleId rule = grammar_.add_rule(std::move(name));
    grammar_.define(rule, node);
    return grammar_.reference(rule);
  }

  GrammarNodeId any_value() {
    if (!any_) any_ = text::add_json_rules(grammar_);
    return grammar_.reference(any_->value);
  }

  GrammarNodeId any_object() {
    any_value();
    return grammar_.reference(any_->object);
  }

  GrammarNodeId compile(const Json& schema, const std::string& path) {
    if (schema.is_boolean()) {
      if (schema.get<bool>()) return any_value();
      refuse_field(path, "is false: no value can match");
    }
    if (!schema.is_object()) {
      refuse_field(path, format("a schema must be an object, not {}", kind_of(schema)));
    }
    check_keywords(schema, path);
    std::string_view form;
    for (const std::string_view name : kForms) {
      if (member(schema, name) == nullptr) continue;
      if (!form.empty())
        unsupported_field(path, format("{} beside {} is not supported", name, form));
      form = name;
    }
    if (form.empty()) return of_types(schema, path);
    for (const Keyword& keyword : kTypeKeywords) {
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

  void check_keywords(const Json& schema, const std::string& path) const {
    for (const auto& item : schema.items()) {
      const std::string& name = item.key();
      const bool known = name == "type" || holds(kForms, name) || holds(kNotes, name) ||
                         std::any_of(std::begin(kTypeKeywords), std::end(kTypeKeywords),
                                     [&](const Keyword& keyword) { return keyword.name == name; });
      if (!known) unsupported_field(path, format("the keyword {} is not supported", quoted(name)));
    }
  }

  static std::string quoted(const std::string& name) {
    constexpr size_t kShown = 60;
    return "\"" + (name.size() > kShown ? name.substr(0, kShown) + "..." : name) + "\"";
  }

  // ---- references and combinations

  GrammarNodeId reference(const Json& value, const std::string& path) {
    const Json& target = resolve(value, path);
    const auto pointer = value.get<std::string>().substr(1);
    return grammar_.reference(rule_of(pointer, target, pointer_path(pointer)));
  }

  std::string pointer_path(const std::string& pointer) const {
    std::string path = root_path_;
    for (const char c : pointer) path += c == '/' ? '.' : c;
    return path;
  }

  const Json& resolve(const Json& value, const std::string& path) const {
    if (!value.is_string()) refuse_field(path, "must be a string");
    const auto& text = value.get_ref<const std::string&>();
    if (!text.starts_with('#')) {
      unsupported_field(path, "only references into the schema itself (#/...) are supported");
    }
    if (text.size() > 1 && text[1] != '/') {
      unsupported_field(path, "references to anchors are not supported");
    }
    const Json* at = &root_;
    size_t begin = 2;
    while (begin <= text.size() && text.size() > 1) {
      const size_t end = std::min(text.find('/', begin), text.size());
      at = step(*at, unescaped(text.substr(begin, end - begin)));
      if (at == nullptr) refuse_field(path, "the reference leads nowhere");
      begin = end + 1;
    }
    return *at;
  }

  static const Json* step(const Json& at, const std::string& token) {
    if (at.is_object()) return member(at, token);
    if (!at.is_array() || token.empty() || token.size() > 6 ||
        token.find_first_not_of("0123456789") != std::string::npos) {
      return nullptr;
    }
    const auto index = static_cast<size_t>(std::stoul(token));
    return index < at.size() ? &at[index] : nullptr;
  }

  static std::string unescaped(std::string token) {
    for (const auto& [from, to] : {std::pair("~1", "/"), std::pair("~0", "~")}) {
      for (size_t at = 0; (at = token.find(from, at)) != std::string::npos; ++at) {
        token.replace(at, 2, to);
      }
    }
    return token;
  }

  GrammarNodeId combination(const Json& list, std::string_view form, const std::string& path) {
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

  void check_disjoint(const Json& list, const std::string& path) const {
    constexpr size_t kMaxAlternatives = 200;  // pairs are compared
    if (list.size() > kMaxAlternatives) {
      unsupported_field(path, format("more than {} schemas are not supported", kMaxAlternatives));
    }
    for (size_t i = 0; i < list.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        if (disjoint(list[k], list[i], path, 0)) continue;
        unsupported_field(path, format("the schemas {} and {} are not seen to exclude each other; "
                                       "use anyOf",
                                       k, i));
      }
    }
  }

  // Whether no value can match both: true only where that is plain to see.
  bool disjoint(const Json& a, const Json& b, const std::string& path, int depth) const {
    constexpr int kMaxDepth = 8;
    if (depth > kMaxDepth) return false;
    for (const Json* schema : {&a, &b}) {
      const Json* const ref = member(*schema, "$ref");
      if (ref == nullptr) continue;
      const Json& target = resolve(*ref, path);
      return schema == &a ? disjoint(target, b, path, depth + 1)
                          : disjoint(a, target, path, depth + 1);
    }
    if (!a.is_object() || !b.is_object()) return false;
    const std::optional<Values> a_values = values_of(a);
    const std::optional<Values> b_values = values_of(b);
    if (a_values && b_values) {
      return std::none_of(a_values->begin(), a_values->end(), [&](const Json* value) {
        return std::any_of(b_values->begin(), b_values->end(),
                           [&](const Json* other) { return *other == *value; });
      });
    }
    const unsigned both = passed_types(a, path) & passed_types(b, path);
    return both == 0 || (both == kObject && discriminated(a, b, path, depth));
  }

  // Both ask for a member that cannot be the same in both.
  bool discriminated(const Json& a, const Json& b, const std::string& path, int depth) const {
    const Json* const members = member(a, "properties");
    const Json* const others = member(b, "properties");
    if (members == nullptr || others == nullptr || !members->is_object()) return false;
    for (const auto& [name, schema] : members->items()) {
      const Json* const other = member(*others, name);
      if (other != nullptr && requires_member(a, name) && requires_member(b, name) &&
          disjoint(schema, *other, path, depth + 1)) {
        return true;
      }
    }
    return false;
  }

  static bool requires_member(const Json& schema, const std::string& name) {
    const Json* const required = member(schema, "required");
    return required != nullptr && required->is_array() &&
           std::find(required->begin(), required->end(), Json(name)) != required->end();
  }

  // ---- values

  // Of enum or const.
  static std::optional<Values> values_of(const Json& schema) {
    if (const Json* const value = member(schema, "const")) return Values{value};
    const Json* const list = member(schema, "enum");
    if (list == nullptr || !list->is_array()) return std::nullopt;
    Values values;
    for (const Json& value : *list) values.push_back(&value);
    return values;
  }

  GrammarNodeId one_of_values(const Json& schema, const std::string& path) {
    const std::optional<Values> values = values_of(schema);
    if (!values || values->empty()) refuse_field(path + ".enum", "must be a list of values");
    const unsigned types = member(schema, "type") == nullptr ? kAnyType : types_of(schema, path);
    Nodes ways;
    for (const Json* const value : *values) {
      if ((type_of(*value) & types) != 0) ways.push_back(literal(*value));
    }
    if (ways.empty()) refuse_field(path, "no value of the list is of the type");
    return grammar_.alternatives(ways);
  }

  GrammarNodeId literal(const Json& value) {
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

  GrammarNodeId separator(char c) { return text::json_separator(grammar_, c); }

  // ---- types

  // The types that a schema lets pass, or more of them.
  unsigned passed_types(const Json& schema, const std::string& path) const {
    if (const auto values = values_of(schema)) {
      unsigned types = 0;
      for (const Json* const value : *values) types |= type_of(*value);
      return types;
    }
    return member(schema, "type") == nullptr ? kAnyType : types_of(schema, path);
  }

  // The types that its texts are made of: those that its keywords speak of if it names none.
  unsigned types_of(const Json& schema, const std::string& path) const {
    const Json* const type = member(schema, "type");
    if (type == nullptr) {
      unsigned types = 0;
      for (const Keyword& keyword : kTypeKeywords) {
        if (member(schema, keyword.name) != nullptr) types |= keyword.type;
      }
      return types == 0 ? kAnyType : types;
    }
    if (type->is_string()) return type_named(*type, path + ".type");
    if (!type->is_array() || type->empty()) {
      refuse_field(path + ".type", "must be a type or a list of types");
    }
    unsigned types = 0;
    for (size_t i = 0; i < type->size(); ++i) {
      types |= type_named((*type)[i], format("{}.type[{}]", path, i));
    }
    return types;
  }

  static unsigned type_named(const Json& name, const std::string& path) {
    if (name.is_string()) {
      for (const TypeName& type : kTypes) {
        if (type.name == name.get_ref<const std::string&>()) return type.bits;
      }
    }
    refuse_field(path, "must be one of null, boolean, object, array, string, integer, number");
  }

  GrammarNodeId of_types(const Json& schema, const std::string& path) {
    const unsigned types = types_of(schema, path);
    bool constrained = false;
    for (const Keyword& keyword : kTypeKeywords) {
      constrained = constrained || member(schema, keyword.name) != nullptr;
    }
    if (types == kAnyType && !constrained) return any_value();
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

  // ---- objects

  struct Member {
    GrammarNodeId node;  // name, colon and value
    bool required;
  };

  GrammarNodeId object(const Json& schema, const std::string& path) {
    const Fields fields(schema, path);
    const Json* const properties = fields.object("properties");
    const Json* const extra = fields.find("additionalProperties");
    const std::set<std::string> required = required_names(schema, path);
    if ((properties == nullptr || properties->empty()) && required.empty() && extra == nullptr) {
      return any_object();
    }
    const bool open = extra != nullptr && !(extra->is_boolean() && !extra->get<bool>());
    std::vector<Member> members;
    std::set<std::string> names;
    if (properties != nullptr) {
      for (const auto& [name, value] : properties->items()) {
        const bool is_required = required.count(name) > 0;
        if (!is_required && value.is_boolean() && !value.get<bool>()) continue;
        members.push_back({named(name, compile(value, path + ".properties." + name)), is_required});
        names.insert(name);
      }
    }
    std::optional<GrammarNodeId> extra_value;
    if (open) extra_value = as_rule(path + " +", compile(*extra, path + ".additionalProperties"));
    for (const std::string& name : required) {
      if (names.count(name) > 0) continue;
      if (extra != nullptr && !open) {
        refuse_field(path + ".required", "names a property that additionalProperties excludes");
      }
      members.push_back({named(name, extra_value ? *extra_value : any_value()), true});
      names.insert(name);
    }
    std::optional<GrammarNodeId> extra_member;
    if (open) {
      extra_member =
          as_rule(path + " + member",
                  grammar_.sequence({other_name(names, path), separator(':'), *extra_value}));
    }
    return members_in_order(members, extra_member, path);
  }

  std::set<std::string> required_names(const Json& schema, const std::string& path) const {
    std::set<std::string> names;
    const Json* const required = member(schema, "required");
    if (required == nullptr) return names;
    if (!required->is_array()) refuse_field(path + ".required", "must be a list of names");
    for (const Json& name : *required) {
      if (!name.is_string()) refuse_field(path + ".required", "must be a list of names");
      names.insert(name.get<std::string>());
    }
    return names;
  }

  GrammarNodeId named(const std::string& name, GrammarNodeId value) {
    return grammar_.sequence({grammar_.literal(dump(Json(name))), separator(':'), value});
  }

  // From the last member to the first: what may follow behind a member that is there, a rule each,
  // and what may follow while none was.
  GrammarNodeId members_in_order(const std::vector<Member>& members,
                                 const std::optional<GrammarNodeId>& extra,
                                 const std::string& path) {
    const GrammarNodeId close = grammar_.literal("}");
    GrammarNodeId behind = close;
    GrammarNodeId first = close;
    if (extra) {
      const GrammarNodeId more = grammar_.sequence({separator(','), *extra});
      behind =
          as_rule(path + " ...", grammar_.sequence({grammar_.repeat(more, 0, kUnbounded), close}));
      first = grammar_.alternatives({grammar_.sequence({*extra, behind}), close});
    }
    for (size_t i = members.size(); i-- > 0;) {
      const Member& it = members[i];
      const GrammarNodeId here = grammar_.sequence({it.node, behind});
      first = it.required ? here : grammar_.alternatives({here, first});
      first = as_rule(format("{} {}", path, i), first);
      const GrammarNodeId next = grammar_.sequence({separator(','), it.node});
      behind = as_rule(format("{} ,{}", path, i),
                       grammar_.sequence({it.required ? next : grammar_.optional(next), behind}));
    }
    return as_rule(path, grammar_.sequence({grammar_.literal("{"), first}));
  }

  // A string that is none of the names, each character written in one way.
  GrammarNodeId other_name(const std::set<std::string>& names, const std::string& path) {
    const CodePointRanges all = text::normalised({{0, text::kLastCodePoint}});
    const GrammarNodeId quote = grammar_.literal("\"");
    const GrammarNodeId rest = grammar_.sequence(
        {grammar_.repeat(text::json_characters(grammar_, all), 0, kUnbounded), quote});
    std::vector<std::u32string> points;
    for (const std::string& name : names) {
      std::u32string text;
      for (size_t at = 0; at < name.size();) {
        const text::CodePoint c = text::code_point_at(name, at);
        text += c.value;
        at += c.length;
      }
      points.push_back(text);
    }
    std::sort(points.begin(), points.end());
    return grammar_.sequence({quote, other_tail(points, 0, quote, rest, path)});
  }

  // `names` are those that agree in their first n characters, sorted.
  GrammarNodeId other_tail(const std::vector<std::u32string>& names, size_t n, GrammarNodeId quote,
                           GrammarNodeId rest, const std::string& path) {
    constexpr size_t kMaxName = 200;
    if (n > kMaxName) {
      unsupported_field(path, format("additionalProperties beside a name of more than {} "
                                     "characters is not supported",
                                     kMaxName));
    }
    Nodes ways;
    CodePointRanges next;
    size_t i = 0;
    if (!names.empty() && names[0].size() == n) {
      ++i;
    } else {
      ways.push_back(quote);
    }
    while (i < names.size()) {
      const char32_t c = names[i][n];
      std::vector<std::u32string> group;
      for (; i < names.size() && names[i][n] == c; ++i) group.push_back(names[i]);
      next.push_back({c, c});
      ways.push_back(grammar_.sequence({text::json_characters(grammar_, {{c, c}}),
                                        other_tail(group, n + 1, quote, rest, path)}));
    }
    const CodePointRanges others = text::complement(text::normalised(next));
    ways.push_back(grammar_.sequence({text::json_characters(grammar_, others), rest}));
    return as_rule(format("{} +{}", path, n), grammar_.alternatives(ways));
  }

  // ---- arrays

  // A count; 3.0 is one too.
  static std::optional<int> count(const Json& schema, std::string_view name,
                                  const std::string& path) {
    const Json* const value = member(schema, name);
    if (value == nullptr) return std::nullopt;
    const std::string where = path + "." + std::string(name);
    if (!value->is_number() || type_of(*value) != kInteger || value->get<double>() < 0) {
      refuse_field(where, "must be an integer from 0");
    }
    return static_cast<int>(std::min(value->get<double>(), 2e9));
  }

  GrammarNodeId array(const Json& schema, const std::string& path) {
    const Fields fields(schema, path);
    if (fields.boolean("uniqueItems").value_or(false)) {
      unsupported_field(path + ".uniqueItems", "is not supported");
    }
    const int min = count(schema, "minItems", path).value_or(0);
    const std::optional<int> max = count(schema, "maxItems", path);
    if (max && *max < min) refuse_field(path, "maxItems is below minItems");
    const Json* const items = member(schema, "items");
    const Json* const prefix = member(schema, "prefixItems");
    if (items != nullptr && items->is_array()) {
      unsupported_field(path + ".items", "a list is not supported; use prefixItems");
    }
    if (prefix != nullptr && !prefix->is_array()) {
      refuse_field(path + ".prefixItems", "must be a list of schemas");
    }
    Nodes places;
    for (size_t i = 0; prefix != nullptr && i < prefix->size(); ++i) {
      if (max && static_cast<int>(i) >= *max) break;
      places.push_back(as_rule(format("{} [{}]", path, i),
                               compile((*prefix)[i], format("{}.prefixItems[{}]", path, i))));
    }
    std::optional<GrammarNodeId> item;
    const bool none = items != nullptr && items->is_boolean() && !items->get<bool>();
    if (items == nullptr && places.empty()) item = any_value();
    if (items != nullptr && !none) item = compile(*items, path + ".items");
    if (item) item = as_rule(path + " []", *item);
    if (!item && static_cast<int>(places.size()) < min) {
      if (items != nullptr) refuse_field(path, "minItems asks for more than there can be");
      item = any_value();
    }
    return as_rule(path, list(places, item, min, max ? *max : kUnbounded, path));
  }

  GrammarNodeId list(const Nodes& places, const std::optional<GrammarNodeId>& item, int min,
                     int max, const std::string& path) {
    const GrammarNodeId close = grammar_.literal("]");
    const GrammarNodeId open = grammar_.literal("[");
    const auto n_places = static_cast<int>(places.size());
    const int left = max == kUnbounded ? kUnbounded : max - n_places;
    GrammarNodeId behind = close;
    if (item && left != 0) {
      const GrammarNodeId more = grammar_.sequence({separator(','), *item});
      if (n_places == 0) {
        const GrammarNodeId some =
            grammar_.sequence({*item, grammar_.repeat(more, std::max(min - 1, 0),
                                                      left == kUnbounded ? kUnbounded : left - 1)});
        return grammar_.sequence({open, min == 0 ? grammar_.optional(some) : some, close});
      }
      behind = grammar_.sequence({grammar_.repeat(more, std::max(min - n_places, 0), left), close});
    }
    for (int i = n_places - 1; i >= 0; --i) {
      GrammarNodeId here = grammar_.sequence({places[static_cast<size_t>(i)], behind});
      if (i > 0) here = grammar_.sequence({separator(','), here});
      behind = i < min ? here : grammar_.alternatives({here, close});
      behind = as_rule(format("{} [{}]...", path, i), behind);
    }
    return grammar_.sequence({open, behind});
  }

  // ---- strings and numbers

  GrammarNodeId string(const Json& schema, const std::string& path) {
    const GrammarNodeId quote = grammar_.literal("\"");
    return grammar_.sequence({quote, characters(schema, path, true), quote});
  }

  // Of a string that has up to `max` characters and is written as it is.
  GrammarNodeId plain_character(std::optional<int> max) {
    const char32_t without = max && *max <= kMostOfLine ? '\n' : '<';
    return grammar_.one_of(text::complement(text::CodePointRanges{{without, without}}));
  }

  GrammarNodeId characters(const Json& schema, const std::string& path, bool in_json) {
    const Fields fields(schema, path);
    const std::optional<std::string> pattern = fields.string("pattern");
    const std::optional<std::string> format_name = fields.string("format");
    const std::optional<int> min = count(schema, "minLength", path);
    const std::optional<int> max = count(schema, "maxLength", path);
    if (max && *max < min.value_or(0)) refuse_field(path, "maxLength is below minLength");
    if (!pattern && !format_name) {
      return grammar_.repeat(in_json ? text::json_string_character(grammar_) : plain_character(max),
                             min.value_or(0), max ? *max : kUnbounded);
    }
    if ((pattern && format_name) || min.value_or(0) > 0 || max) {
      unsupported_field(path,
                        "pattern or format beside another keyword for strings is not "
                        "supported");
    }
    const std::optional<std::string_view> known =
        format_name ? pattern_of_format(*format_name) : std::nullopt;
    if (format_name && !known) {
      unsupported_field(path + ".format", format("{} is not supported", quoted(*format_name)));
    }
    try {
      return text::add_regex(
          grammar_, pattern ? std::string_view(*pattern) : *known,
          {.full_match = !pattern, .in_json_string = in_json, .one_line = !in_json});
    } catch (Error& e) {
      throw RequestError(e.code(), e.message(), path + ".pattern");
    }
  }

  std::optional<NumberBound> bound(const Json& schema, std::string_view name, bool inclusive,
                                   const std::string& path) const {
    const Json* const value = member(schema, name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) refuse_field(path + "." + std::string(name), "must be a number");
    return NumberBound{value->get<double>(), inclusive};
  }

  GrammarNodeId number(const Json& schema, const std::string& path, bool integer) {
    const Json* const step = member(schema, "multipleOf");
    if (step != nullptr && !(integer && step->is_number() && step->get<double>() == 1)) {
      unsupported_field(path + ".multipleOf", "is not supported, but for 1 of an integer");
    }
    NumberRange range{bound(schema, "minimum", true, path), bound(schema, "maximum", true, path)};
    const auto low = bound(schema, "exclusiveMinimum", false, path);
    const auto high = bound(schema, "exclusiveMaximum", false, path);
    if (low && (!range.low || low->value >= range.low->value)) range.low = low;
    if (high && (!range.high || high->value <= range.high->value)) range.high = high;
    if (!range.low && !range.high) {
      return integer ? text::json_integer(grammar_) : text::json_number(grammar_);
    }
    try {
      const auto node = integer ? integers_in(grammar_, range) : numbers_in(grammar_, range);
      if (node) return as_rule(path, *node);
    } catch (Error& e) {
      throw RequestError(e.code(), e.message() + " is not supported", path);
    }
    refuse_field(path, "no number lies between the bounds");
  }

  const Json& root_;
  const std::string root_path_;
  Grammar grammar_;
  std::map<std::string, RuleId> rules_;
  std::deque<Todo> todo_;
  std::optional<text::JsonRules> any_;
};

// Errors of the grammar itself name no path.
template <class Compile>
auto told_at(std::string_view path, const Compile& compile) {
  try {
    return compile();
  } catch (const RequestError&) {
    throw;
  } catch (const Error& e) {
    throw RequestError(e.code(), e.message(), std::string(path));
  }
}

}  // namespace

text::Grammar json_schema_grammar(const Json& schema, std::string_view path) {
  return told_at(path, [&] { return SchemaCompiler(schema, path).run(); });
}

std::optional<text::Grammar> json_schema_line_grammar(const Json& schema, std::string_view path) {
  return told_at(path, [&] { return SchemaCompiler(schema, path).line(); });
}

}  // namespace strata::server
