#pragma once

#include <string>
#include <string_view>

#include "strata/server/answer/tools.h"
#include "strata/text/prompt.h"

namespace strata::server {

// How calls of tools are held to their form, as rules of GBNF with the root `prefix` + "root".
// What a call's arguments must be: the schema of each parameter where its tool is strict, and else
// as far as it can be held to. A value that is written without quotes and may be a string can be
// any text. Errors: RequestError naming what of a strict tool's schema is not supported.
struct CallGrammar {
  text::CallFormat format = text::CallFormat::kNone;
  bool parallel = true;  // more than one call may come
};

// One call of the tools, or several.
std::string calls_gbnf(const Tools& tools, const CallGrammar& how, std::string_view prefix);
// Any text, and calls behind it or none.
std::string text_and_calls_gbnf(const Tools& tools, const CallGrammar& how,
                                std::string_view prefix);

}  // namespace strata::server
