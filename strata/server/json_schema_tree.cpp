#include "strata/server/json_schema_tree.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "strata/base/format.h"
#include "strata/server/request_error.h"

namespace strata::server {
namespace {

struct TypeName {
  std::string_view name;
  unsigned bits;
};
constexpr TypeName kTypes[] = {{"null", kNull},    {"boolean", kBoolean}, {"object", kObject},
                               {"array", kArray},  {"string", kString},   {"integer", kInteger},
                               {"number", kNumber}};

// Below this looking at all names is faster.
constexpr size_t kIndexed = 16;

unsigned type_named(const Json& name, const std::string& path) {
  if (name.is_string()) {
    for (const TypeName& type : kTypes) {
      if (type.name == name.get_ref<const std::string&>()) return type.bits;
    }
  }
  refuse_field(path, "must be one of null, boolean, object, array, string, integer, number");
}

std::string unescaped(std::string token) {
  for (const auto& [from, to] : {std::pair("~1", "/"), std::pair("~0", "~")}) {
    for (size_t at = 0; (at = token.find(from, at)) != std::string::npos; ++at) {
      token.replace(at, 2, to);
    }
  }
  return token;
}

}  // namespace

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

const Json* SchemaTree::member(const Json& value, std::string_view name) {
  if (!value.is_object()) return nullptr;
  const auto& members = value.get_ref<const Json::object_t&>();
  if (members.size() <= kIndexed) {
    for (const auto& [key, one] : members) {
      if (key == name) return &one;
    }
    return nullptr;
  }
  const auto [index, is_new] = indices_.try_emplace(&value);
  if (is_new) {
    budget_.spend(members.size());
    for (const auto& [key, one] : members) index->second.emplace(key, &one);
  }
  const auto found = index->second.find(name);
  return found == index->second.end() ? nullptr : found->second;
}

std::string SchemaTree::path_of(const std::string& pointer) const {
  std::string path = path_;
  for (const char c : pointer) path += c == '/' ? '.' : c;
  return path;
}

const Json& SchemaTree::resolve(const Json& reference, const std::string& path) {
  if (!reference.is_string()) refuse_field(path, "must be a string");
  const auto& text = reference.get_ref<const std::string&>();
  if (!text.starts_with('#')) {
    unsupported_field(path, "only references into the schema itself (#/...) are supported");
  }
  if (text.size() > 1 && text[1] != '/') {
    unsupported_field(path, "references to anchors are not supported");
  }
  budget_.spend(1 + text.size() / 16);
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

const Json* SchemaTree::step(const Json& at, const std::string& token) {
  if (at.is_object()) return member(at, token);
  if (!at.is_array() || token.empty() || token.size() > 6 ||
      token.find_first_not_of("0123456789") != std::string::npos) {
    return nullptr;
  }
  const auto index = static_cast<size_t>(std::stoul(token));
  return index < at.size() ? &at[index] : nullptr;
}

unsigned SchemaTree::types_of(const Json& schema, const std::string& path) {
  const Json* const type = member(schema, "type");
  if (type == nullptr) {
    unsigned types = 0;
    for (const TypeKeyword& keyword : kTypeKeywords) {
      if (member(schema, keyword.name) != nullptr) types |= keyword.type;
    }
    return types == 0 ? kAnyType : types;
  }
  if (type->is_string()) return type_named(*type, path + ".type");
  if (!type->is_array() || type->empty()) {
    refuse_field(path + ".type", "must be a type or a list of types");
  }
  budget_.spend(type->size());
  unsigned types = 0;
  for (size_t i = 0; i < type->size(); ++i) {
    types |= type_named((*type)[i], format("{}.type[{}]", path, i));
  }
  return types;
}

bool SchemaTree::speaks_of_types(const Json& schema) {
  return std::any_of(
      std::begin(kTypeKeywords), std::end(kTypeKeywords),
      [&](const TypeKeyword& keyword) { return member(schema, keyword.name) != nullptr; });
}

std::optional<SchemaTree::Values> SchemaTree::values_of(const Json& schema) {
  if (const Json* const value = member(schema, "const")) return Values{value};
  const Json* const list = member(schema, "enum");
  if (list == nullptr || !list->is_array()) return std::nullopt;
  budget_.spend(list->size());
  Values values;
  for (const Json& value : *list) values.push_back(&value);
  return values;
}

const SchemaTree::Names& SchemaTree::required(const Json& schema) {
  const auto [names, is_new] = required_.try_emplace(&schema);
  const Json* const list = is_new ? member(schema, "required") : nullptr;
  if (list != nullptr && list->is_array()) {
    budget_.spend(list->size());
    for (const Json& name : *list) {
      if (name.is_string()) names->second.insert(name.get_ref<const std::string&>());
    }
  }
  return names->second;
}

// The types that a schema lets pass, or more of them.
unsigned SchemaTree::passed_types(const Json& schema, const std::string& path) {
  if (const auto values = values_of(schema)) {
    unsigned types = 0;
    for (const Json* const value : *values) types |= type_of(*value);
    return types;
  }
  return member(schema, "type") == nullptr ? kAnyType : types_of(schema, path);
}

bool SchemaTree::disjoint(const Json& a, const Json& b, const std::string& path, int depth) {
  constexpr int kMaxDepth = 8;
  if (depth > kMaxDepth) return false;
  budget_.spend(1);
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
                         [&](const Json* other) { return same(*other, *value); });
    });
  }
  const unsigned both = passed_types(a, path) & passed_types(b, path);
  return both == 0 || (both == kObject && discriminated(a, b, path, depth));
}

// As operator==, which does not count what it looks at.
bool SchemaTree::same(const Json& a, const Json& b) {
  budget_.spend(1);
  if (a.is_number() || b.is_number()) return a == b;
  if (a.type() != b.type() || a.size() != b.size()) return false;
  if (a.is_string()) {
    budget_.spend(a.get_ref<const std::string&>().size() / 16);
    return a == b;
  }
  if (!a.is_structured()) return a == b;
  if (a.is_array()) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (!same(a[i], b[i])) return false;
    }
    return true;
  }
  for (const auto& [name, value] : a.get_ref<const Json::object_t&>()) {
    const Json* const other = member(b, name);
    if (other == nullptr || !same(value, *other)) return false;
  }
  return true;
}

// Both ask for a member that cannot be the same in both.
bool SchemaTree::discriminated(const Json& a, const Json& b, const std::string& path, int depth) {
  const Json* const members = member(a, "properties");
  const Json* const others = member(b, "properties");
  if (members == nullptr || others == nullptr) return false;
  const Names& wanted = required(b);
  for (const std::string_view name : required(a)) {
    budget_.spend(1);
    if (!wanted.contains(name)) continue;
    const Json* const one = member(*members, name);
    const Json* const other = member(*others, name);
    if (one != nullptr && other != nullptr && disjoint(*one, *other, path, depth + 1)) return true;
  }
  return false;
}

}  // namespace strata::server
