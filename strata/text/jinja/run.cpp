#include "strata/text/jinja/run.h"

#include <algorithm>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/code_points.h"
#include "strata/text/jinja/builtins.h"
#include "strata/text/jinja/operators.h"
#include "strata/text/jinja/string_literals.h"
#include "strata/text/jinja/value_writer.h"

namespace strata::text {

TemplateRun::TemplateRun(const TemplateTree& tree, const TemplateLimits& limits,
                         const RenderOptions& options)
    : tree_(tree),
      limits_(limits),
      options_(options),
      budget_(limits),
      scope_(std::make_shared<Scope>(tree.names.size())),
      output_(budget_) {
  for (size_t i = 0; i < tree.names.size(); ++i) {
    const TemplateFunction function = find_function(tree.names[i]);
    if (function == nullptr) continue;
    auto& object = make<FunctionObject>();
    object.function = function;
    scope_->set(static_cast<NameId>(i), Value::object(&object));
  }
}

void TemplateRun::define(const Map& variables) {
  for (size_t i = 0; i < tree_.names.size(); ++i) {
    if (const Value* value = variables.find(tree_.names[i])) {
      scope_->set(static_cast<NameId>(i), *value);
    }
  }
}

MarkedText TemplateRun::run() {
  exec(tree_.body);
  return output_.take();
}

void TemplateRun::too_deep() const {
  throw Error(ErrorCode::kInvalidArgument,
              format("nested too deep: more than {} levels of evaluation", limits_.max_depth));
}

Value TemplateRun::filter(std::string_view name, const Value& input,
                          const CallArguments& arguments) {
  const TemplateFilter function = find_filter(name);
  if (function == nullptr) {
    throw Error(ErrorCode::kUnsupported, format("the filter '{}' does not exist here", name));
  }
  return function(*this, input, arguments);
}

bool TemplateRun::test(std::string_view name, const Value& input, const CallArguments& arguments) {
  const TemplateTest function = find_test(name);
  if (function == nullptr) {
    throw Error(ErrorCode::kUnsupported, format("the test '{}' does not exist here", name));
  }
  return function(*this, input, arguments);
}

Value TemplateRun::attribute(const Value& object, std::string_view name) {
  if (object.is_undefined()) throw Error(ErrorCode::kInvalidArgument, object.reason());
  if (changes_value(object, name)) {
    return absent(format("the method '{}' of a {} changes it, which templates may not do",
                         clipped(name), type_name(object)));
  }
  if (has_method(object, name)) {
    auto& method = make<MethodObject>();
    method.self = object;
    method.name = name;
    return Value::object(&method);
  }
  if (object.is_map()) {
    if (const Value* found = object.as_map().find(name)) return *found;
  } else if (object.is(Value::Kind::kObject)) {
    TemplateObject& target = *object.as_object();
    if (target.kind() == TemplateObject::Kind::kNamespace) {
      if (const Value* found = static_cast<NamespaceObject&>(target).find(name)) return *found;
    } else if (target.kind() == TemplateObject::Kind::kLoop) {
      return loop_attribute(static_cast<LoopObject&>(target), name);
    }
  }
  return absent(format("'{} object' has no attribute '{}'", type_name(object), clipped(name)));
}

Value TemplateRun::item(const Value& object, const Value& key) {
  if (object.is_undefined()) throw Error(ErrorCode::kInvalidArgument, object.reason());
  if (object.is_map()) {
    if (const Value* found = object.as_map().find(key)) return *found;
  }
  if (key.is_string()) {
    // As in Jinja2, object['name'] falls back to object.name.
    if (!object.is_map() || has_method(object, key.as_string())) {
      return attribute(object, key.as_string());
    }
    return absent(
        format("'{} object' has no attribute '{}'", type_name(object), clipped(key.as_string())));
  }
  const std::optional<int64_t> index = to_integer(key);
  if (index && (object.is_list() || object.is_string())) {
    const bool lazy = object.is_list() && object.as_list().kind() > ListKind::kTuple &&
                      object.as_list().kind() != ListKind::kRange;
    const int64_t length = lazy ? 0 : length_of(object, budget_);
    const int64_t at = *index < 0 ? *index + length : *index;
    if (at >= 0 && at < length) {
      const auto place = static_cast<size_t>(at);
      if (object.is_list()) return object.as_list().items()[place];
      const MarkedText& text = object.as_text();
      if (text.ascii()) return make_slice(text, place, place + 1, budget_);
      budget_.scan(text.size());
      const size_t begin = code_point_offset(text.bytes(), place);
      return make_slice(text, begin, code_point_offset(text.bytes(), 1, begin), budget_);
    }
  }
  return absent(index ? format("{} object has no element {}", type_name(object), *index)
                      : format("{} object has no such element", type_name(object)));
}

Value TemplateRun::loop_attribute(LoopObject& loop, std::string_view name) {
  const Value::Items& items = loop.items.as_list().items();
  const auto index = static_cast<int64_t>(loop.index);
  const auto length = static_cast<int64_t>(items.size());
  if (name == "index") return Value::integer(index + 1);
  if (name == "index0") return Value::integer(index);
  if (name == "revindex") return Value::integer(length - index);
  if (name == "revindex0") return Value::integer(length - index - 1);
  if (name == "first") return Value::boolean(index == 0);
  if (name == "last") return Value::boolean(index + 1 == length);
  if (name == "length") return Value::integer(length);
  if (name == "depth") return Value::integer(loop.depth + 1);
  if (name == "depth0") return Value::integer(loop.depth);
  if (name == "previtem") {
    return index == 0 ? Value::undefined("there is no previous item") : items[loop.index - 1];
  }
  if (name == "nextitem") {
    return index + 1 >= length ? Value::undefined("there is no next item") : items[loop.index + 1];
  }
  return Value::undefined(format("'loop' has no attribute '{}'", name));
}

std::shared_ptr<Scope> TemplateRun::new_scope(std::shared_ptr<Scope> parent) {
  budget_.make(2 * sizeof(Scope));
  return std::make_shared<Scope>(std::move(parent));
}

// Undefined values carry their reason, which takes room where they are kept.
Value TemplateRun::absent(std::string reason) {
  budget_.make(sizeof(std::string) + reason.size());
  return Value::undefined(std::move(reason));
}

Value TemplateRun::call(const Value& callee, const CallArguments& arguments) {
  if (callee.is_undefined()) throw Error(ErrorCode::kInvalidArgument, callee.reason());
  if (callee.is(Value::Kind::kObject)) {
    const TemplateObject& object = *callee.as_object();
    switch (object.kind()) {
      case TemplateObject::Kind::kMacro:
        return call_macro(static_cast<const MacroObject&>(object), arguments);
      case TemplateObject::Kind::kFunction:
        return static_cast<const FunctionObject&>(object).function(*this, arguments);
      case TemplateObject::Kind::kMethod: {
        const auto& method = static_cast<const MethodObject&>(object);
        return call_method(*this, method.self, method.name, arguments);
      }
      case TemplateObject::Kind::kLoop:
        return call_loop(static_cast<const LoopObject&>(object), arguments);
      case TemplateObject::Kind::kNamespace:
        break;
    }
  }
  throw Error(ErrorCode::kInvalidArgument,
              format("a value of type {} cannot be called", type_name(callee)));
}

Value TemplateRun::call_macro(const MacroObject& macro, const CallArguments& arguments) {
  const Level level(*this);
  std::shared_ptr<Scope> scope = new_scope(macro.closure);
  bind(macro, arguments, scope);
  Value text;
  render_into(text, macro.signature->body, std::move(scope));
  return text;
}

void TemplateRun::bind(const MacroObject& macro, const CallArguments& arguments,
                       const std::shared_ptr<Scope>& scope) {
  const Signature& signature = *macro.signature;
  const size_t n = signature.parameters.size();
  const size_t n_given = arguments.positional.size();
  if (n_given > n && !signature.uses_varargs) {
    throw Error(ErrorCode::kInvalidArgument, format("macro '{}' takes at most {} arguments, not {}",
                                                    signature.name, n, n_given));
  }
  std::vector<bool> bound(n, false);
  for (size_t i = 0; i < std::min(n, n_given); ++i) {
    scope->set(signature.parameters[i], arguments.positional[i]);
    bound[i] = true;
  }
  if (signature.uses_varargs) {
    Value::Items more(arguments.positional.begin() + static_cast<ptrdiff_t>(std::min(n, n_given)),
                      arguments.positional.end());
    scope->set(kNameVarargs, make_list(std::move(more), budget_, ListKind::kTuple));
  }
  if (signature.uses_caller) scope->set(kNameCaller, Value::undefined("no caller is defined"));
  Value::Entries extra;
  budget_.step(arguments.named.size() * n / 8);
  for (const auto& [name, value] : arguments.named) {
    const auto parameter =
        std::find_if(signature.parameters.begin(), signature.parameters.end(),
                     [this, &wanted = name](NameId id) { return tree_.names[id] == wanted; });
    if (parameter != signature.parameters.end()) {
      const auto i = static_cast<size_t>(parameter - signature.parameters.begin());
      if (bound[i]) {
        throw Error(ErrorCode::kInvalidArgument,
                    format("macro '{}' got its argument '{}' twice", signature.name, name));
      }
      bound[i] = true;
      scope->set(*parameter, value);
    } else if (name == "caller" && signature.uses_caller) {
      scope->set(kNameCaller, value);
    } else if (signature.uses_kwargs) {
      extra.emplace_back(Value::scaffold(name), value);
    } else {
      throw Error(ErrorCode::kInvalidArgument,
                  format("macro '{}' has no argument '{}'", signature.name, name));
    }
  }
  if (signature.uses_kwargs) scope->set(kNameKwargs, make_map(std::move(extra), budget_));
  // Defaults see the parameters in front of them, so they are evaluated inside and in order.
  const size_t first_default = n - signature.defaults.size();
  for (size_t i = 0; i < n; ++i) {
    if (bound[i]) continue;
    if (i < first_default) {
      scope->set(signature.parameters[i], absent(format("parameter '{}' was not provided",
                                                        tree_.names[signature.parameters[i]])));
      continue;
    }
    const std::shared_ptr<Scope> before = std::exchange(scope_, scope);
    Value value = eval(*signature.defaults[i - first_default]);
    scope_ = before;
    scope->set(signature.parameters[i], std::move(value));
  }
}

Value TemplateRun::call_loop(const LoopObject& loop, const CallArguments& arguments) {
  const Level level(*this);
  if (!loop.statement->recursive) {
    throw Error(ErrorCode::kInvalidArgument, "this loop is not marked as recursive");
  }
  if (arguments.positional.size() != 1 || !arguments.named.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "a recursive loop takes one argument");
  }
  MarkedTextBuilder inner(budget_);
  MarkedTextBuilder* const before = std::exchange(out_, &inner);
  run_loop(*loop.statement, arguments.positional[0], loop.depth + 1, loop.outside);
  out_ = before;
  return Value::string(inner.take());
}

}  // namespace strata::text
