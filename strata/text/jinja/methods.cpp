#include <algorithm>
#include <iterator>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/jinja/arguments.h"
#include "strata/text/jinja/builtins.h"
#include "strata/text/jinja/operators.h"
#include "strata/text/jinja/run.h"

namespace strata::text {
namespace {

constexpr std::string_view kListMethods[] = {"append", "clear",   "copy",   "count",
                                             "extend", "index",   "insert", "pop",
                                             "remove", "reverse", "sort"};
constexpr std::string_view kTupleMethods[] = {"count", "index"};
constexpr std::string_view kMapMethods[] = {"clear",      "copy",   "fromkeys", "get",
                                            "items",      "keys",   "pop",      "popitem",
                                            "setdefault", "update", "values"};
constexpr std::string_view kLoopMethods[] = {"changed", "cycle"};

template <size_t kN>
bool is_in(const std::string_view (&names)[kN], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

[[noreturn]] void refuse(const Value& self, std::string_view name) {
  throw Error(ErrorCode::kInvalidArgument,
              format("the method '{}' of a {} changes it, which templates may not do", name,
                     type_name(self)));
}

Value call_list_method(TemplateRun& run, const Value& self, std::string_view name,
                       const CallArguments& arguments) {
  const Value::Items& items = self.as_list().items();
  if (name == "copy") {
    BoundArguments("copy", arguments, {});
    return self;
  }
  if (name != "count" && name != "index") refuse(self, name);
  const BoundArguments args(name, arguments, {"value"});
  int64_t n = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!equal(items[i], args[0], run.budget())) continue;
    if (name == "index") return Value::integer(static_cast<int64_t>(i));
    ++n;
  }
  if (name == "index") throw Error(ErrorCode::kInvalidArgument, "index: the value is not found");
  return Value::integer(n);
}

Value call_map_method(TemplateRun& run, const Value& self, std::string_view name,
                      const CallArguments& arguments) {
  const Map& map = self.as_map();
  if (name == "get") {
    const BoundArguments args("get", arguments, {"key", "default"}, 1);
    const Value* found = map.find(args[0]);
    if (found != nullptr) return *found;
    return args.has(1) ? args[1] : Value();
  }
  const bool keys = name == "keys";
  const bool values = name == "values";
  const bool pairs = name == "items";
  if (name != "copy" && !keys && !values && !pairs) refuse(self, name);
  BoundArguments(name, arguments, {});
  if (name == "copy") return self;
  Value::Items items;
  for (const auto& [key, value] : map.entries()) {
    if (pairs) {
      items.push_back(make_list({key, value}, run.budget(), ListKind::kTuple));
    } else {
      items.push_back(keys ? key : value);
    }
  }
  return make_list(std::move(items), run.budget(),
                   keys     ? ListKind::kKeys
                   : values ? ListKind::kValues
                            : ListKind::kItems);
}

Value call_loop_method(TemplateRun& run, LoopObject& loop, std::string_view name,
                       const CallArguments& arguments) {
  if (!arguments.named.empty()) {
    throw Error(ErrorCode::kInvalidArgument, format("loop.{} has no named arguments", name));
  }
  if (name == "cycle") {
    if (arguments.positional.empty()) {
      throw Error(ErrorCode::kInvalidArgument, "loop.cycle needs items to cycle through");
    }
    return arguments.positional[loop.index % arguments.positional.size()];
  }
  const Value now = make_list(arguments.positional, run.budget(), ListKind::kTuple);
  const bool same = loop.last_changed && equal(*loop.last_changed, now, run.budget());
  if (!same) loop.last_changed = now;
  return Value::boolean(!same);
}

}  // namespace

bool changes_value(const Value& self, std::string_view name) {
  if (!has_method(self, name) || self.is_string() || self.is(Value::Kind::kObject)) return false;
  if (self.is_list()) return name != "copy" && name != "count" && name != "index";
  return name == "clear" || name == "pop" || name == "popitem" || name == "setdefault" ||
         name == "update";
}

bool has_method(const Value& self, std::string_view name) {
  switch (self.kind()) {
    case Value::Kind::kString:
      return has_text_method(name);
    case Value::Kind::kMap:
      return is_in(kMapMethods, name);
    case Value::Kind::kList:
      if (self.as_list().kind() == ListKind::kList) return is_in(kListMethods, name);
      return self.as_list().kind() == ListKind::kTuple && is_in(kTupleMethods, name);
    case Value::Kind::kObject:
      return self.as_object()->kind() == TemplateObject::Kind::kLoop && is_in(kLoopMethods, name);
    default:
      return false;
  }
}

Value call_method(TemplateRun& run, const Value& self, std::string_view name,
                  const CallArguments& arguments) {
  run.budget().step();
  switch (self.kind()) {
    case Value::Kind::kString:
      if (auto result = call_text_method(run, self, name, arguments)) return *result;
      break;
    case Value::Kind::kMap:
      return call_map_method(run, self, name, arguments);
    case Value::Kind::kList:
      return call_list_method(run, self, name, arguments);
    case Value::Kind::kObject:
      if (self.as_object()->kind() == TemplateObject::Kind::kLoop) {
        return call_loop_method(run, static_cast<LoopObject&>(*self.as_object()), name, arguments);
      }
      break;
    default:
      break;
  }
  throw Error(ErrorCode::kInvalidArgument,
              format("a {} has no method '{}'", type_name(self), name));
}

}  // namespace strata::text
