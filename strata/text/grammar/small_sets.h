#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace strata::text {

// Sorts the numbers and drops those that come again.
inline void make_set(std::vector<uint32_t>& numbers) {
  if (!std::is_sorted(numbers.begin(), numbers.end())) std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

}  // namespace strata::text
