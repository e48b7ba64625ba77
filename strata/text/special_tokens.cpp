#include "strata/text/special_tokens.h"

#include <algorithm>

#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::text {

SpecialTokens::SpecialTokens(const Vocab& vocab) : starts_(256, false) {
  for (int32_t id = 0; id < vocab.size(); ++id) {
    if (!vocab.is_special(id)) continue;
    const std::string_view text = vocab.piece(id);
    if (text.size() > kMaxBytes) {
      throw Error(ErrorCode::kCorruptFile,
                  format("special token {} has {} bytes; {} at most", id, text.size(), kMaxBytes));
    }
    if (text.empty()) continue;  // nothing to find
    entries_.push_back({text, id});
    starts_[static_cast<uint8_t>(text[0])] = true;
  }
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.text < b.text; });
}

std::optional<SpecialTokens::Match> SpecialTokens::find(std::string_view text, size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!starts_[static_cast<uint8_t>(text[begin])]) continue;
    if (const std::optional<Match> match = match_at(text, begin)) return match;
  }
  return std::nullopt;
}

// Narrows the entries that start with text[begin, end) byte by byte. The entry equal to that
// prefix sorts first among them.
std::optional<SpecialTokens::Match> SpecialTokens::match_at(std::string_view text,
                                                            size_t begin) const {
  std::optional<Match> longest;
  auto first = entries_.begin();
  auto last = entries_.end();
  for (size_t end = begin; end < text.size(); ++end) {
    const size_t depth = end - begin;
    const auto byte = static_cast<uint8_t>(text[end]);
    const auto byte_at = [depth](const Entry& entry) {
      return depth < entry.text.size() ? static_cast<uint8_t>(entry.text[depth]) : -1;
    };
    first = std::partition_point(first, last, [&](const Entry& e) { return byte_at(e) < byte; });
    last = std::partition_point(first, last, [&](const Entry& e) { return byte_at(e) == byte; });
    if (first == last) break;
    if (first->text.size() == depth + 1) longest = Match{begin, end + 1, first->id};
  }
  return longest;
}

}  // namespace strata::text
