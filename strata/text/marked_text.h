#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/text/jinja/budget.h"

namespace strata::text {

// Where a piece of text comes from. Content is text from outside (messages, tools, file names);
// scaffold is what the template itself writes.
enum class Origin : uint8_t { kScaffold, kContent };

// Positions in bytes, end not included.
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;
};

// UTF-8 bytes that remember, byte by byte, which of them are content. Every string operation of
// the template keeps this, so that special tokens are looked for in scaffolding only (F-014).
// Bytes that are not UTF-8 are kept; each counts as one character.
class MarkedText {
 public:
  MarkedText() = default;
  MarkedText(std::string bytes, Origin origin);

  std::string_view bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // All bytes below 0x80: a character is a byte.
  bool ascii() const { return ascii_; }
  // Sorted, disjoint, not touching, none empty.
  std::span<const ByteRange> content() const { return content_; }

  // Calls fn(std::string_view piece, Origin) for [begin, end), in order, joined where origins
  // agree.
  template <class Fn>
  void each_piece(size_t begin, size_t end, Fn&& fn) const;
  template <class Fn>
  void each_piece(Fn&& fn) const {
    each_piece(0, bytes_.size(), fn);
  }

 private:
  friend class MarkedTextBuilder;
  // The first content range that ends behind `at`.
  size_t first_range_after(size_t at) const;

  std::string bytes_;
  std::vector<ByteRange> content_;
  bool ascii_ = true;
  Charge charge_;  // of texts that a template has made
};

// Puts a MarkedText together. Every byte is charged to the budget before it is written, so a
// template cannot make more text than its limits allow. The budget outlives the text.
class MarkedTextBuilder {
 public:
  explicit MarkedTextBuilder(TemplateBudget& budget) : budget_(&budget) {
    text_.charge_ = Charge(budget);
  }

  // Room for this many bytes more. Errors: as the budget, before anything is written.
  void reserve(uint64_t bytes);
  void add(std::string_view bytes, Origin origin);
  void add(const MarkedText& text) { add(text, 0, text.size()); }
  // [begin, end) of text, in bytes.
  void add(const MarkedText& text, size_t begin, size_t end);

  size_t size() const { return text_.bytes_.size(); }
  MarkedText take();

 private:
  TemplateBudget* budget_;
  MarkedText text_;
};

template <class Fn>
void MarkedText::each_piece(size_t begin, size_t end, Fn&& fn) const {
  const std::string_view all = bytes_;
  size_t at = begin;
  for (size_t i = first_range_after(begin); i < content_.size() && at < end; ++i) {
    const ByteRange range = content_[i];
    if (range.begin >= end) break;
    if (range.begin > at) {
      fn(all.substr(at, range.begin - at), Origin::kScaffold);
      at = range.begin;
    }
    const size_t stop = range.end < end ? range.end : end;
    fn(all.substr(at, stop - at), Origin::kContent);
    at = stop;
  }
  if (at < end) fn(all.substr(at, end - at), Origin::kScaffold);
}

}  // namespace strata::text
