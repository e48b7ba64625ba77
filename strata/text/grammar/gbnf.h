#pragma once

#include <string_view>

#include "strata/text/grammar/grammar.h"

namespace strata::text {

// Reads GBNF: rules `name ::= alternatives`, one a line, `root` the start. Alternatives may go on
// behind `|`, inside parentheses, and on a new line that begins with `|`.
//   "text"  [a-z] [^a-z]  .  name  ( ... )      then any of  * + ? {m} {m,} {m,n}      # comment
//   escapes: \n \r \t \\ \" \[ \] \- \^ \xHH \uHHHH \UHHHHHHHH
// `.` is any character, a line feed too. Names: letters, digits, `-`, `_`.
// Errors: kInvalidArgument "grammar line 3 column 7: ..." for what cannot be read, a rule that is
//         missing or defined twice; kUnsupported beyond the limits and for references to tokens.
//         Left recursion is found by compile().
// Source: the format as llama.cpp's users write it (grammars/README.md).
Grammar parse_gbnf(std::string_view text, const GrammarLimits& limits = {});

}  // namespace strata::text
