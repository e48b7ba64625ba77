#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "strata/text/jinja/budget.h"
#include "strata/text/marked_text.h"
#include "strata/text/value.h"

namespace strata::text {

// Values as text. Strings keep their marks; what stands between them (brackets, commas, numbers)
// goes with the string before it, so that a long list is not cut into many segments.

// str(value), as {{ value }} prints it. Errors: kInvalidArgument for values that have no text here:
// generators, ranges, functions, namespaces.
void write_text(const Value& value, MarkedTextBuilder& out, TemplateBudget& budget);
// repr(value).
void write_repr(const Value& value, MarkedTextBuilder& out, TemplateBudget& budget);
// str(value), without a copy where it is a string already.
Value to_text(const Value& value, TemplateBudget& budget);

// json.dumps and its arguments.
struct JsonStyle {
  std::optional<std::string> indent;  // of one level; absent: all on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool ensure_ascii = false;
  bool sort_keys = false;
};
// Errors: kInvalidArgument for values that JSON has no form for.
void write_json(const Value& value, const JsonStyle& style, MarkedTextBuilder& out,
                TemplateBudget& budget);

}  // namespace strata::text
