#include <algorithm>
#include <iterator>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/code_points.h"
#include "strata/text/jinja/arguments.h"
#include "strata/text/jinja/builtins.h"
#include "strata/text/jinja/operators.h"
#include "strata/text/jinja/run.h"
#include "strata/text/jinja/value_writer.h"
#include "strata/text/unicode_tables.h"

namespace strata::text {
namespace {

template <Value::Kind kKind>
bool is_kind(TemplateRun&, const Value& input, const CallArguments& arguments) {
  BoundArguments("the test", arguments, {});
  return input.is(kKind);
}

bool is_defined(TemplateRun&, const Value& input, const CallArguments& arguments) {
  BoundArguments("defined", arguments, {});
  return !input.is_undefined();
}

template <bool kValue>
bool is_constant(TemplateRun&, const Value& input, const CallArguments& arguments) {
  BoundArguments("the test", arguments, {});
  return input.is(Value::Kind::kBool) && input.as_bool() == kValue;
}

bool is_number(TemplateRun&, const Value& input, const CallArguments& arguments) {
  BoundArguments("number", arguments, {});
  return is_numeric(input);
}

bool is_callable(TemplateRun&, const Value& input, const CallArguments& arguments) {
  BoundArguments("callable", arguments, {});
  // Undefined can be called, too: it then says what is missing.
  if (input.is_undefined()) return true;
  return input.is(Value::Kind::kObject) &&
         input.as_object()->kind() != TemplateObject::Kind::kNamespace;
}

bool is_iterable(TemplateRun&, const Value& input, const CallArguments& arguments) {
  BoundArguments("iterable", arguments, {});
  return input.is_string() || input.is_list() || input.is_map() || input.is_undefined();
}

bool is_sequence(TemplateRun&, const Value& input, const CallArguments& arguments) {
  BoundArguments("sequence", arguments, {});
  if (!input.is_list()) return input.is_string() || input.is_map() || input.is_undefined();
  const ListKind kind = input.as_list().kind();
  return kind == ListKind::kList || kind == ListKind::kTuple || kind == ListKind::kRange;
}

bool is_escaped(TemplateRun&, const Value&, const CallArguments& arguments) {
  BoundArguments("escaped", arguments, {});
  return false;
}

template <Comparison kComparison>
bool compares(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("the test", arguments, {"other"});
  switch (kComparison) {
    case Comparison::kEqual:
      return equal(input, args[0], run.budget());
    case Comparison::kNotEqual:
      return !equal(input, args[0], run.budget());
    case Comparison::kLess:
      return compare(input, args[0], run.budget()) < 0;
    case Comparison::kLessEqual:
      return compare(input, args[0], run.budget()) <= 0;
    case Comparison::kGreater:
      return compare(input, args[0], run.budget()) > 0;
    case Comparison::kGreaterEqual:
      return compare(input, args[0], run.budget()) >= 0;
    case Comparison::kIn:
      return contains(args[0], input, run.budget());
    case Comparison::kNotIn:
      return !contains(args[0], input, run.budget());
  }
  return false;
}

bool has_rest(TemplateRun& run, const Value& input, const Value& divisor, int64_t rest) {
  return equal(apply(Arithmetic::kModulo, input, divisor, run.budget()), Value::integer(rest),
               run.budget());
}

template <int kRest>
bool is_parity(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  BoundArguments("the test", arguments, {});
  return has_rest(run, input, Value::integer(2), kRest);
}

bool is_divisible(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("divisibleby", arguments, {"num"});
  return has_rest(run, input, args[0], 0);
}

template <uint32_t kWanted>
bool has_case(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  BoundArguments("the test", arguments, {});
  const Value text = to_text(input, run.budget());
  run.budget().scan(8 * text.as_text().size());
  bool any = false;
  for (size_t at = 0; at < text.as_text().size();) {
    const CodePoint c = code_point_at(text.as_string(), at);
    const uint32_t flags = character_flags(c.value) & (kUpper | kLower | kTitle);
    if ((flags & ~kWanted) != 0) return false;
    any = any || flags != 0;
    at += c.length;
  }
  return any;
}

// Python's `is`. Values here have no identity of their own but objects, lists and maps.
bool is_same(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("sameas", arguments, {"other"});
  const Value& other = args[0];
  if (input.kind() != other.kind()) return false;
  if (input.is_list()) return &input.as_list() == &other.as_list();
  if (input.is_map()) return &input.as_map() == &other.as_map();
  return equal(input, other, run.budget());
}

bool is_filter(TemplateRun&, const Value& input, const CallArguments& arguments) {
  BoundArguments("filter", arguments, {});
  return input.is_string() && find_filter(input.as_string()) != nullptr;
}

bool is_test(TemplateRun&, const Value& input, const CallArguments& arguments) {
  BoundArguments("test", arguments, {});
  return input.is_string() && find_test(input.as_string()) != nullptr;
}

constexpr NamedTest kTests[] = {
    {"!=", compares<Comparison::kNotEqual>},
    {"<", compares<Comparison::kLess>},
    {"<=", compares<Comparison::kLessEqual>},
    {"==", compares<Comparison::kEqual>},
    {">", compares<Comparison::kGreater>},
    {">=", compares<Comparison::kGreaterEqual>},
    {"boolean", is_kind<Value::Kind::kBool>},
    {"callable", is_callable},
    {"defined", is_defined},
    {"divisibleby", is_divisible},
    {"eq", compares<Comparison::kEqual>},
    {"equalto", compares<Comparison::kEqual>},
    {"escaped", is_escaped},
    {"even", is_parity<0>},
    {"false", is_constant<false>},
    {"filter", is_filter},
    {"float", is_kind<Value::Kind::kNumber>},
    {"ge", compares<Comparison::kGreaterEqual>},
    {"greaterthan", compares<Comparison::kGreater>},
    {"gt", compares<Comparison::kGreater>},
    {"in", compares<Comparison::kIn>},
    {"integer", is_kind<Value::Kind::kInteger>},
    {"iterable", is_iterable},
    {"le", compares<Comparison::kLessEqual>},
    {"lessthan", compares<Comparison::kLess>},
    {"lower", has_case<kLower>},
    {"lt", compares<Comparison::kLess>},
    {"mapping", is_kind<Value::Kind::kMap>},
    {"ne", compares<Comparison::kNotEqual>},
    {"none", is_kind<Value::Kind::kNull>},
    {"number", is_number},
    {"odd", is_parity<1>},
    {"sameas", is_same},
    {"sequence", is_sequence},
    {"string", is_kind<Value::Kind::kString>},
    {"test", is_test},
    {"true", is_constant<true>},
    {"undefined", is_kind<Value::Kind::kUndefined>},
    {"upper", has_case<kUpper>},
};

}  // namespace

TemplateTest find_test(std::string_view name) {
  const auto found = std::lower_bound(
      std::begin(kTests), std::end(kTests), name,
      [](const NamedTest& test, std::string_view wanted) { return test.name < wanted; });
  return found != std::end(kTests) && found->name == name ? found->function : nullptr;
}

}  // namespace strata::text
