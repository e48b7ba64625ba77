#include "strata/text/string_search.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace strata::text {

size_t find_first(std::string_view text, std::string_view pattern, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (pattern.empty()) return from;
  // Not string_view::find: it compares at every place, which is quadratic for a long pattern of
  // one letter. memmem is linear in what it passes; under the address sanitizer in all of the text,
  // which memchr is not.
  const char* begin = text.data() + from;
  const size_t n = text.size() - from;
  const void* found = pattern.size() == 1 ? std::memchr(begin, pattern[0], n)
                                          : memmem(begin, n, pattern.data(), pattern.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

size_t find_last(std::string_view text, std::string_view pattern, size_t end) {
  text = text.substr(0, std::min(end, text.size()));
  const size_t n = pattern.size();
  if (n == 0) return text.size();
  if (n > text.size()) return std::string_view::npos;
  // Knuth, Morris and Pratt, with both strings read from their ends.
  const auto letter = [&](size_t i) { return pattern[n - 1 - i]; };
  std::vector<size_t> border(n + 1, 0);
  for (size_t i = 1, k = 0; i < n; ++i) {
    while (k > 0 && letter(i) != letter(k)) k = border[k];
    if (letter(i) == letter(k)) ++k;
    border[i + 1] = k;
  }
  for (size_t at = text.size(), k = 0; at > 0; --at) {
    while (k > 0 && text[at - 1] != letter(k)) k = border[k];
    if (text[at - 1] == letter(k)) ++k;
    if (k == n) return at - 1;
  }
  return std::string_view::npos;
}

}  // namespace strata::text
