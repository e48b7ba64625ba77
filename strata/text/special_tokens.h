#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "strata/text/vocab.h"

namespace strata::text {

// Finds special tokens (control and user-defined) in text. Keeps views into the vocabulary, which
// outlives it. Immutable; any thread.
class SpecialTokens {
 public:
  struct Match {
    size_t begin;  // bytes
    size_t end;
    int32_t id;
  };

  // Errors: kCorruptFile for a special token of more than kMaxBytes, the bound that keeps the
  // search linear.
  static constexpr size_t kMaxBytes = 256;
  explicit SpecialTokens(const Vocab& vocab);

  // The first match at or after `from` in `text`, the longest of those that start there.
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  struct Entry {
    std::string_view text;
    int32_t id;
  };
  std::optional<Match> match_at(std::string_view text, size_t begin) const;

  std::vector<Entry> entries_;  // sorted by text
  std::vector<bool> starts_;    // [256] the first bytes of entries_
};

}  // namespace strata::text
