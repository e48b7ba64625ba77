#include "strata/model/ngram.h"

namespace strata::model {

void NgramHash::append_rows(std::span<const int32_t> ids, size_t first,
                            std::vector<int64_t>& out) const {
  for (size_t t = first; t < ids.size(); ++t) {
    uint64_t mix = static_cast<uint64_t>(ids[t]) * multipliers[0];
    // An end of text, or the start of the sequence, cuts off everything behind it.
    bool cut = false;
    for (int n = 1; n < order; ++n) {
      const size_t back = static_cast<size_t>(n);
      cut = cut || back > t || ids[t - back] == eos;
      const int32_t id = cut ? eos : ids[t - back];
      mix ^= static_cast<uint64_t>(id) * multipliers[back];
      for (int h = 0; h < heads; ++h) {
        const size_t head = static_cast<size_t>((n - 1) * heads + h);
        out.push_back(static_cast<int64_t>(offsets[head] + mix % sizes[head]));
      }
    }
  }
}

}  // namespace strata::model
