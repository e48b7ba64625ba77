#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace strata::model {

// Which rows of the n-gram table a token reads: one for each order (2 .. order) and head, by a hash
// of the token and those before it (docs/model.md, n-gram embedding).
struct NgramHash {
  int order = 0;  // the longest n-gram
  int heads = 0;  // an order
  int32_t eos = 0;
  std::vector<uint64_t> multipliers;     // [order]
  std::vector<uint64_t> offsets, sizes;  // [(order - 1) * heads] of each head's part of the table

  // Appends the rows of ids[first..]; ids start where the session does.
  void append_rows(std::span<const int32_t> ids, size_t first, std::vector<int64_t>& out) const;
};

}  // namespace strata::model
