#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strata/text/jinja/ast.h"
#include "strata/text/jinja/percent_format.h"
#include "strata/text/value.h"

namespace strata::text {

class TemplateRun;

// Variables of one block, and what they hide. Shared by the blocks inside it and by macros defined
// there, which may be called after the block has ended; a macro belongs to the run, so there are no
// cycles.
class Scope {
 public:
  explicit Scope(std::shared_ptr<Scope> parent) : parent_(std::move(parent)) {}
  // The outermost scope: a place for every name.
  explicit Scope(size_t n_names) : dense_(n_names) {}

  // In this scope alone.
  const Value* find(NameId name) const;
  void set(NameId name, Value value);
  void clear() { values_.clear(); }
  const Scope* parent() const { return parent_.get(); }
  // What one find() costs, in steps.
  size_t cost() const { return values_.size() / 8; }

 private:
  std::shared_ptr<Scope> parent_;
  std::vector<std::pair<NameId, Value>> values_;
  std::vector<std::optional<Value>> dense_;
};

// What a value of kind object points to. Owned by the run and alive until its end.
class TemplateObject {
 public:
  enum class Kind : uint8_t { kNamespace, kLoop, kMacro, kFunction, kMethod };
  explicit TemplateObject(Kind kind) : kind_(kind) {}
  virtual ~TemplateObject() = default;
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

// Errors: kInvalidArgument for objects that have no text.
std::string printed(const TemplateObject& object);

struct NamespaceObject : TemplateObject {
  NamespaceObject() : TemplateObject(Kind::kNamespace) {}
  std::vector<std::pair<std::string, Value>> attributes;
  const Value* find(std::string_view name) const;
  void set(std::string_view name, Value value);
};

struct LoopObject : TemplateObject {
  LoopObject() : TemplateObject(Kind::kLoop) {}
  const ForStatement* statement = nullptr;
  std::shared_ptr<Scope> outside;  // the scope around the loop
  Value items;
  size_t index = 0;
  int depth = 0;
  std::optional<Value> last_changed;
};

struct MacroObject : TemplateObject {
  MacroObject() : TemplateObject(Kind::kMacro) {}
  const Signature* signature = nullptr;
  std::shared_ptr<Scope> closure;
};

using TemplateFunction = Value (*)(TemplateRun& run, const CallArguments& arguments);

struct FunctionObject : TemplateObject {
  FunctionObject() : TemplateObject(Kind::kFunction) {}
  TemplateFunction function = nullptr;
};

// A method that was named but not called yet.
struct MethodObject : TemplateObject {
  MethodObject() : TemplateObject(Kind::kMethod) {}
  Value self;
  std::string name;
};

}  // namespace strata::text
