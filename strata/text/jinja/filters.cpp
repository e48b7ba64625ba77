#include <algorithm>
#include <cmath>
#include <span>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/jinja/arguments.h"
#include "strata/text/jinja/builtins.h"
#include "strata/text/jinja/operators.h"
#include "strata/text/jinja/run.h"
#include "strata/text/jinja/value_writer.h"

namespace strata::text {
namespace {

void need_number(std::string_view filter, const Value& input) {
  if (input.is_undefined()) throw Error(ErrorCode::kInvalidArgument, input.reason());
  if (!is_numeric(input)) {
    throw Error(ErrorCode::kInvalidArgument,
                format("{} needs a number, not a {}", filter, type_name(input)));
  }
}

Value abs_filter(TemplateRun&, const Value& input, const CallArguments& arguments) {
  BoundArguments("abs", arguments, {});
  need_number("abs", input);
  return absolute(input);
}

// Attributes alone, not the keys of a map.
Value attr(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("attr", arguments, {"name"});
  const std::string_view name = args.text(0).bytes();
  if (input.is_map() && !has_method(input, name)) {
    return Value::undefined("'dict object' has no such attribute");
  }
  return run.attribute(input, name);
}

Value default_filter(TemplateRun&, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("default", arguments, {"default_value", "boolean"}, 2);
  const bool replace = input.is_undefined() || (args.flag(1, false) && !truthy(input));
  if (!replace) return input;
  return args.has(0) ? args[0] : Value::scaffold("");
}

Value float_filter(TemplateRun&, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("float", arguments, {"default"}, 1);
  const Value otherwise = args.has(0) ? args[0] : Value::number(0.0);
  if (input.is_undefined()) throw Error(ErrorCode::kInvalidArgument, input.reason());
  if (is_numeric(input)) return Value::number(to_double(input));
  if (!input.is_string()) return otherwise;
  const std::optional<double> value = parse_number(input.as_string());
  return value ? Value::number(*value) : otherwise;
}

Value int_filter(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("int", arguments, {"default", "base"}, 2);
  const Value otherwise = args.has(0) ? args[0] : Value::integer(0);
  if (input.is_undefined()) throw Error(ErrorCode::kInvalidArgument, input.reason());
  if (const std::optional<int64_t> integer = to_integer(input)) return Value::integer(*integer);
  if (input.is(Value::Kind::kNumber)) {
    // NaN has no value, and that is the one failure with a default.
    return is_nan(input) ? otherwise : Value::integer(truncated(input.as_number()));
  }
  if (!input.is_string()) return otherwise;
  run.budget().scan(input.as_text().size());
  const int64_t base = args.integer(1, 10);
  if (const auto integer =
          parse_integer(input.as_string(), base < 0 || base > 36 ? -1 : static_cast<int>(base))) {
    return Value::integer(*integer);
  }
  const std::optional<double> number = parse_number(input.as_string());
  if (!number || std::isnan(*number)) return otherwise;
  return Value::integer(truncated(*number));
}

Value round_filter(TemplateRun&, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("round", arguments, {"precision", "method"}, 2);
  need_number("round", input);
  const int64_t precision = std::clamp<int64_t>(args.integer(0, 0), -400, 400);
  const std::string_view method = args.has(1) ? args.text(1).bytes() : "common";
  if (method == "ceil" || method == "floor") {
    const double unit = std::pow(10.0, static_cast<double>(precision));
    const double scaled = to_double(input) * unit;
    return Value::number((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit);
  }
  if (method != "common") {
    throw Error(ErrorCode::kInvalidArgument, "round knows the methods common, ceil and floor");
  }
  if (const std::optional<int64_t> integer = to_integer(input)) {
    if (precision >= 0) return Value::integer(*integer);
    return Value::integer(truncated(round_to(static_cast<double>(*integer), precision)));
  }
  return Value::number(round_to(input.as_number(), precision));
}

Value string_filter(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  BoundArguments("string", arguments, {});
  return to_text(input, run.budget());
}

// Separators and indents are written between pieces of content and must not be content themselves.
std::string style_text(const Value& value) {
  if (!value.is_string() || !value.as_text().content().empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "tojson: separators and indents are strings of the template");
  }
  return std::string(value.as_string());
}

Value tojson(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("tojson", arguments,
                            {"ensure_ascii", "indent", "separators", "sort_keys"}, 4);
  JsonStyle style;
  style.ensure_ascii = args.flag(0, false);
  style.sort_keys = args.flag(3, false);
  if (const Value* indent = args.given(1)) {
    constexpr int64_t kMaxIndent = 256;
    style.item_separator = std::string(",");  // g++ 12 warns about a plain ","
    if (const std::optional<int64_t> width = to_integer(*indent)) {
      style.indent.emplace(static_cast<size_t>(std::clamp<int64_t>(*width, 0, kMaxIndent)), ' ');
    } else {
      style.indent = style_text(*indent);
    }
  }
  if (const Value* separators = args.given(2)) {
    if (!separators->is_list() || separators->as_list().items().size() != 2) {
      throw Error(ErrorCode::kInvalidArgument, "tojson: separators are two strings");
    }
    style.item_separator = style_text(separators->as_list().items()[0]);
    style.key_separator = style_text(separators->as_list().items()[1]);
  }
  MarkedTextBuilder out(run.budget());
  write_json(input, style, out, run.budget());
  return Value::string(out.take());
}

constexpr NamedFilter kFilters[] = {
    {"abs", abs_filter},         {"attr", attr},          {"d", default_filter},
    {"default", default_filter}, {"float", float_filter}, {"int", int_filter},
    {"round", round_filter},     {"safe", string_filter}, {"string", string_filter},
    {"tojson", tojson},
};

}  // namespace

std::span<const NamedFilter> value_filters() { return kFilters; }

TemplateFilter find_filter(std::string_view name) {
  for (const std::span<const NamedFilter> table :
       {text_filters(), list_filters(), value_filters()}) {
    const auto found = std::lower_bound(
        table.begin(), table.end(), name,
        [](const NamedFilter& filter, std::string_view wanted) { return filter.name < wanted; });
    if (found != table.end() && found->name == name) return found->function;
  }
  return nullptr;
}

}  // namespace strata::text
