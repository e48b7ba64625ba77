#pragma once

#include <string>
#include <utility>
#include <vector>

#include "strata/text/jinja/budget.h"
#include "strata/text/value.h"

namespace strata::text {

// The arguments of a call in a template.
struct CallArguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// text % argument: %s %r %d %i %u %x %X %o %c %e %E %f %F %g %G %%, with flags, width, precision
// and %(name)s from a map. The argument is a tuple of several values, a map, or one value.
// Errors: kInvalidArgument for a format that does not fit its values.
Value format_percent(const MarkedText& text, const Value& argument, TemplateBudget& budget);

// text.format(...): {} {0} {name}, !r and !s, and the format specification of strings and numbers.
// Errors: as format_percent; kUnsupported for attributes, items and fields inside a field.
Value format_braces(const MarkedText& text, const CallArguments& arguments, TemplateBudget& budget);

}  // namespace strata::text
