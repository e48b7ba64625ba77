#include "strata/server/answer/tools.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "strata/base/error.h"
#include "strata/base/text.h"

namespace strata::server {
namespace {

// Schemas come from requests, and references make cycles.
constexpr int kMaxDepth = 32;
constexpr int kMaxSchemas = 10'000;

void add_type(const Json& name, ParameterTypes& types) {
  if (name == "string") {
    types.string = true;
    return;
  }
  types.other = true;
  types.boolean = types.boolean || name == "boolean";
  types.null = types.null || name == "null";
}

// What a reference into the schema of the whole tool names; null: nothing that is there.
const Json* target_of(const Json& reference, const Json& root) {
  if (!reference.is_string()) return nullptr;
  const std::string& text = reference.get_ref<const std::string&>();
  if (!text.starts_with("#")) return nullptr;
  try {
    const Json::json_pointer pointer(text.substr(1));
    return root.contains(pointer) ? &root.at(pointer) : nullptr;
  } catch (const Json::exception&) {
    return nullptr;
  }
}

// left: schemas that may still be looked at. Beyond that and the depth a value may be anything.
ParameterTypes types_of(const Json& schema, const Json& root, int depth, int& left) {
  if (!schema.is_object() || depth == 0 || --left < 0) return {};
  if (const auto reference = schema.find("$ref"); reference != schema.end()) {
    const Json* target = target_of(*reference, root);
    return target == nullptr ? ParameterTypes{} : types_of(*target, root, depth - 1, left);
  }
  ParameterTypes types{false, false};
  const auto each = [&](const char* name, const auto& use) {
    const auto found = schema.find(name);
    if (found == schema.end()) return;
    if (found->is_array())
      for (const Json& item : *found) use(item);
    else
      use(*found);
  };
  each("type", [&](const Json& name) { add_type(name, types); });
  const auto value = [&](const Json& item) {
    add_type(item.is_string() ? "string" : item.is_boolean() ? "boolean" : "object", types);
  };
  if (!types.string && !types.other) {
    each("enum", value);
    each("const", value);
    for (const char* form : {"anyOf", "oneOf", "allOf"})
      each(form, [&](const Json& item) {
        const ParameterTypes inner = types_of(item, root, depth - 1, left);
        types.string = types.string || inner.string;
        types.other = types.other || inner.other;
        types.boolean = types.boolean || inner.boolean;
        types.null = types.null || inner.null;
      });
  }
  return types.string || types.other ? types : ParameterTypes{};
}

std::optional<Json> parsed(std::string_view text) {
  try {
    return parse_json(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

const Tool* find_tool(const Tools& tools, std::string_view name) {
  const auto found = std::ranges::find(tools, name, &Tool::name);
  return found == tools.end() ? nullptr : &*found;
}

ParameterTypes parameter_types(const Tool& tool, std::string_view parameter) {
  if (tool.parameters == nullptr || !tool.parameters->is_object()) return {};
  const auto properties = tool.parameters->find("properties");
  if (properties == tool.parameters->end() || !properties->is_object()) return {};
  const auto schema = properties->find(std::string(parameter));
  return types_of(tool, schema == properties->end() ? nullptr : &*schema);
}

ParameterTypes types_of(const Tool& tool, const Json* schema, size_t* n_schemas) {
  if (schema == nullptr) return {};
  int left = kMaxSchemas;
  const ParameterTypes types = types_of(*schema, *tool.parameters, kMaxDepth, left);
  if (n_schemas != nullptr) *n_schemas += static_cast<size_t>(kMaxSchemas - std::max(left, 0));
  return types;
}

std::string typed_value(std::string_view text, const ParameterTypes& types) {
  if (types.other) {
    const std::string_view word = trimmed(text);
    // As Python spells them, and so some templates.
    if (types.boolean && (word == "True" || word == "False"))
      return word == "True" ? "true" : "false";
    if (types.null && word == "None") return "null";
    const std::optional<Json> value = parsed(word);
    // A quoted text was written as it is.
    if (value && !value->is_string()) return dump(*value);
  }
  return dump(Json(std::string(text)));
}

}  // namespace strata::server
