#pragma once

#include <span>
#include <string>
#include <string_view>

#include "strata/text/grammar/grammar.h"

namespace strata::text {

// A grammar as GBNF that parse_gbnf() reads back to the same language. Its rules are called
// `prefix` + "root" and so on, so that several grammars can stand in one text. The rules of `more`
// are written as well; gbnf_rule() is how other rules refer to them.
// Errors: kUnsupported if the text becomes longer than the max_source_bytes of the grammar's
//         limits, which is what parse_gbnf() reads.
std::string to_gbnf(const Grammar& grammar, std::string_view prefix = "",
                    std::span<const RuleId> more = {});
std::string gbnf_rule(const Grammar& grammar, std::string_view prefix, RuleId rule);

// Text as a literal of GBNF.
std::string gbnf_literal(std::string_view utf8);

}  // namespace strata::text
