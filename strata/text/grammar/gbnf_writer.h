#pragma once

#include <string>
#include <string_view>

#include "strata/text/grammar/grammar.h"

namespace strata::text {

// A grammar as GBNF that parse_gbnf() reads back to the same language. Its rules are called
// `prefix` + "root" and so on, so that several grammars can stand in one text.
std::string to_gbnf(const Grammar& grammar, std::string_view prefix = "");

// Text as a literal of GBNF.
std::string gbnf_literal(std::string_view utf8);

}  // namespace strata::text
