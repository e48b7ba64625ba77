#pragma once

#include <cstddef>
#include <string_view>

namespace strata::text {

// Byte positions, npos if absent. Time is linear in text and pattern together, whatever they are.
size_t find_first(std::string_view text, std::string_view pattern, size_t from = 0);
// The last match that ends at or before `end`.
size_t find_last(std::string_view text, std::string_view pattern,
                 size_t end = std::string_view::npos);

}  // namespace strata::text
