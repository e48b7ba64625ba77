#pragma once

#include <string>
#include <string_view>

namespace strata {

// ASCII alone: neither depends on the locale.

inline std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// Blanks, tabs and line ends.
inline constexpr std::string_view kWhiteSpace = " \t\r\n";

// Without white space at both ends.
inline std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kWhiteSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kWhiteSpace) - first + 1);
}

}  // namespace strata
