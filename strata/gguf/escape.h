#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace strata::gguf {

// Text from a file, fit for a message or a terminal: control characters and bytes that are no UTF-8
// read \n, \t, \x1b, a backslash reads \\. At most max_bytes of text are shown, whole characters
// only, then "...".
std::string escaped(std::string_view text, size_t max_bytes = 120);

// A whole message, fit for a terminal: as escaped(), but a backslash stays one, as parts of the
// message may have been escaped before, and lines stay lines: only what comes from a file is kept
// from making some, by escaped().
std::string printable(std::string_view message, size_t max_bytes = 4000);

}  // namespace strata::gguf
