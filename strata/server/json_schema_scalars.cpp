#include <algorithm>
#include <nlohmann/json.hpp>

#include "strata/base/format.h"
#include "strata/server/fields.h"
#include "strata/server/json_numbers.h"
#include "strata/server/json_schema_compiler.h"
#include "strata/server/json_schema_formats.h"
#include "strata/server/request_error.h"
#include "strata/text/grammar/regex.h"

namespace strata::server {

using text::kUnbounded;

namespace {

// Of strings in calls: names and words are this short, and texts with several lines longer.
constexpr int kMostOfLine = 256;

}  // namespace

// A count; 3.0 is one too.
std::optional<int> SchemaCompiler::count(const Json& schema, std::string_view name,
                                         const std::string& path) {
  const Json* const value = member(schema, name);
  if (value == nullptr) return std::nullopt;
  const std::string where = path + "." + std::string(name);
  if (!value->is_number() || type_of(*value) != kInteger || value->get<double>() < 0) {
    refuse_field(where, "must be an integer from 0");
  }
  return static_cast<int>(std::min(value->get<double>(), 2e9));
}

text::GrammarNodeId SchemaCompiler::string(const Json& schema, const std::string& path) {
  const Node quote = grammar_.literal("\"");
  return grammar_.sequence({quote, characters(schema, path, true), quote});
}

// Of a string that has up to `max` characters and is written as it is.
text::GrammarNodeId SchemaCompiler::plain_character(std::optional<int> max) {
  const char32_t without = max && *max <= kMostOfLine ? '\n' : '<';
  return grammar_.one_of(text::complement(text::CodePointRanges{{without, without}}));
}

text::GrammarNodeId SchemaCompiler::characters(const Json& schema, const std::string& path,
                                               bool in_json) {
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
    unsupported_field(path + ".format",
                      format("{} is not supported", "\"" + shown(*format_name) + "\""));
  }
  try {
    return text::add_regex(
        grammar_, pattern ? std::string_view(*pattern) : *known,
        {.full_match = !pattern, .in_json_string = in_json, .one_line = !in_json});
  } catch (Error& e) {
    throw RequestError(e.code(), e.message(), path + ".pattern");
  }
}

text::GrammarNodeId SchemaCompiler::number(const Json& schema, const std::string& path,
                                           bool integer) {
  const Json* const step = member(schema, "multipleOf");
  if (step != nullptr && !(integer && step->is_number() && step->get<double>() == 1)) {
    unsupported_field(path + ".multipleOf", "is not supported, but for 1 of an integer");
  }
  const auto bound = [&](std::string_view name, bool inclusive) -> std::optional<NumberBound> {
    const Json* const value = member(schema, name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) refuse_field(path + "." + std::string(name), "must be a number");
    return NumberBound{value->get<double>(), inclusive};
  };
  NumberRange range{bound("minimum", true), bound("maximum", true)};
  const auto low = bound("exclusiveMinimum", false);
  const auto high = bound("exclusiveMaximum", false);
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

}  // namespace strata::server
