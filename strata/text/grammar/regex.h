#pragma once

#include <string_view>

#include "strata/text/grammar/grammar.h"

namespace strata::text {

struct RegexOptions {
  // The whole text is the match. Otherwise the match may lie anywhere in it, as for `pattern` of
  // JSON Schema; then ^ and $ hold it to the ends.
  bool full_match = true;
  // The text is matched as it is written inside a JSON string: see json_characters().
  bool in_json_string = false;
  // The text has no line feed, whatever the pattern says.
  bool one_line = false;
};

// Adds what a regular expression of ECMAScript (Unicode, no flags) matches: characters, classes,
// escapes, groups, alternatives, quantifiers (a lazy one has the same language), ^ and $ at the
// ends of the pattern or of all alternatives of a group that stands there.
// Errors: kInvalidArgument "pattern, character 3: ..." for what cannot be read; kUnsupported naming
//         back-references, look-around, \b, \B, \p, flags, anchors elsewhere, and beyond the
//         limits.
// Source: ECMA-262, 2023, section 22.2.
GrammarNodeId add_regex(Grammar& grammar, std::string_view pattern,
                        const RegexOptions& options = {});

// A grammar of one rule.
Grammar regex_grammar(std::string_view pattern, const RegexOptions& options = {},
                      const GrammarLimits& limits = {});

}  // namespace strata::text
