#pragma once

#include <cstdint>
#include <optional>

#include "strata/text/grammar/grammar.h"

namespace strata::server {

// JSON numbers between bounds, as grammars.

struct NumberBound {
  double value = 0;
  bool inclusive = true;
};
struct NumberRange {
  std::optional<NumberBound> low;
  std::optional<NumberBound> high;
};

// All integers in the range, of at most 18 digits. nullopt: none.
// Errors: kUnsupported for a bound above 2^53 that still has 18 digits.
std::optional<text::GrammarNodeId> integers_in(text::Grammar& grammar, const NumberRange& range);

// Numbers without exponent in the range. Digits behind the point are so few that no double lies on
// the other side of a bound than its text. nullopt: none.
// Errors: kUnsupported for a bound that needs more than 15 digits.
std::optional<text::GrammarNodeId> numbers_in(text::Grammar& grammar, const NumberRange& range);

}  // namespace strata::server
