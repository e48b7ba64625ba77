#include "strata/text/jinja/objects.h"

#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::text {

const Value* Scope::find(NameId name) const {
  if (name < dense_.size()) return dense_[name] ? &*dense_[name] : nullptr;
  for (const auto& [id, value] : values_) {
    if (id == name) return &value;
  }
  return nullptr;
}

void Scope::set(NameId name, Value value) {
  if (name < dense_.size()) {
    dense_[name] = std::move(value);
    return;
  }
  for (auto& [id, old] : values_) {
    if (id == name) {
      old = std::move(value);
      return;
    }
  }
  values_.emplace_back(name, std::move(value));
}

std::string printed(const TemplateObject& object) {
  if (object.kind() == TemplateObject::Kind::kMacro) {
    return format("<Macro '{}'>", static_cast<const MacroObject&>(object).signature->name);
  }
  throw Error(ErrorCode::kInvalidArgument,
              object.kind() == TemplateObject::Kind::kNamespace ? "a namespace cannot be printed"
              : object.kind() == TemplateObject::Kind::kLoop    ? "a loop cannot be printed"
                                                                : "a function cannot be printed");
}

const Value* NamespaceObject::find(std::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

void NamespaceObject::set(std::string_view name, Value value) {
  for (auto& [key, old] : attributes) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  attributes.emplace_back(name, std::move(value));
}

}  // namespace strata::text
