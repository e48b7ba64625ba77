#pragma once

#include <string>
#include <string_view>

namespace strata::text {

// What stands between the quotes of a string literal, with its backslash escapes replaced.
// Errors: kInvalidArgument, naming the line, for escapes that are cut short, characters outside
// Unicode and half surrogate pairs; kUnsupported for \N{name}.
std::string unescaped(std::string_view body, int line);

// The start of a text, for messages: at most 80 bytes, whole characters.
std::string_view clipped(std::string_view text);

}  // namespace strata::text
