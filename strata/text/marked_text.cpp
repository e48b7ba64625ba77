#include "strata/text/marked_text.h"

#include <algorithm>
#include <utility>

namespace strata::text {
namespace {

bool all_ascii(std::string_view bytes) {
  unsigned char seen = 0;
  for (const char c : bytes) seen |= static_cast<unsigned char>(c);
  return seen < 0x80;
}

}  // namespace

MarkedText::MarkedText(std::string bytes, Origin origin)
    : bytes_(std::move(bytes)), ascii_(all_ascii(bytes_)) {
  if (origin == Origin::kContent && !bytes_.empty()) content_.push_back({0, bytes_.size()});
}

size_t MarkedText::first_range_after(size_t at) const {
  const auto found = std::partition_point(content_.begin(), content_.end(),
                                          [at](const ByteRange& r) { return r.end <= at; });
  return static_cast<size_t>(found - content_.begin());
}

void MarkedTextBuilder::add(std::string_view bytes, Origin origin) {
  if (bytes.empty()) return;
  text_.charge_.grow(bytes.size());
  const size_t begin = text_.bytes_.size();
  text_.bytes_.append(bytes);
  text_.ascii_ = text_.ascii_ && all_ascii(bytes);
  if (origin == Origin::kScaffold) return;
  auto& ranges = text_.content_;
  if (!ranges.empty() && ranges.back().end == begin) {
    ranges.back().end = text_.bytes_.size();
    return;
  }
  text_.charge_.grow(sizeof(ByteRange));
  ranges.push_back({begin, text_.bytes_.size()});
}

void MarkedTextBuilder::add(const MarkedText& text, size_t begin, size_t end) {
  text.each_piece(begin, end,
                  [this](std::string_view piece, Origin origin) { add(piece, origin); });
}

void MarkedTextBuilder::reserve(uint64_t bytes) {
  budget_->foresee(1, bytes);
  text_.bytes_.reserve(text_.bytes_.size() + bytes);
}

MarkedText MarkedTextBuilder::take() {
  text_.charge_.grow(sizeof(MarkedText));  // a short text costs more than its bytes
  MarkedText result = std::move(text_);
  text_ = MarkedText();
  text_.charge_ = Charge(*budget_);
  return result;
}

}  // namespace strata::text
