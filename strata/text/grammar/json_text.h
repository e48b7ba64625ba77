#pragma once

#include "strata/text/grammar/grammar.h"

namespace strata::text {

// JSON as answers are asked for: no white space but one blank, which may be left out, behind `,`
// and `:`. Numbers have at most 18 digits in front of the point, 18 behind it and 2 in the
// exponent: what every reader holds, and an answer cannot be digits without end.
// Errors of all: as Grammar.

// One character of a string as it stands between the quotation marks: itself or any escape. A pair
// of \u escapes that makes one character counts once; a lone surrogate is refused.
GrammarNodeId json_string_character(Grammar& grammar);
// The same for characters of a normalised set, each written in one way: itself where JSON allows
// that, else the short escape (\n), else \u00XX.
GrammarNodeId json_characters(Grammar& grammar, const CodePointRanges& ranges);

GrammarNodeId json_string(Grammar& grammar);
GrammarNodeId json_integer(Grammar& grammar);
GrammarNodeId json_number(Grammar& grammar);
// `,` or `:` and the optional blank.
GrammarNodeId json_separator(Grammar& grammar, char separator);

// Adds rules for any value and any object.
struct JsonRules {
  RuleId value;
  RuleId object;
};
JsonRules add_json_rules(Grammar& grammar);

// Any JSON object; any JSON value.
Grammar json_object_grammar();
Grammar json_value_grammar();

}  // namespace strata::text
