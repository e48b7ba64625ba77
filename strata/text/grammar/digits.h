#pragma once

namespace strata::text {

// Of the sources of grammars: ASCII alone.
inline bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }

// The value of a hexadecimal digit; -1 for anything else.
inline int hex_digit(char32_t c) {
  if (is_digit(c)) return static_cast<int>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<int>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<int>(c - 'A') + 10;
  return -1;
}

}  // namespace strata::text
