#include "strata/text/jinja/text_operations.h"

#include <algorithm>
#include <vector>

#include "strata/base/error.h"
#include "strata/text/code_points.h"
#include "strata/text/jinja/operators.h"
#include "strata/text/jinja/value_writer.h"
#include "strata/text/string_search.h"
#include "strata/text/unicode_tables.h"

namespace strata::text {
namespace {

// What is written to a buffer goes to the text, which is paid for, in parts of this size.
constexpr size_t kBufferBytes = 4096;
constexpr char32_t kCapitalSigma = 0x3A3;
constexpr char32_t kFinalSigma = 0x3C2;

bool starts_word(char32_t before) {
  return is_space(before) || before == '-' || before == '(' || before == '{' || before == '[' ||
         before == '<';
}

// Remembers what stood in front, to tell how the next character is to be written.
class CaseChooser {
 public:
  explicit CaseChooser(Recasing recasing) : recasing_(recasing) {}

  CaseMapping next(char32_t c) {
    const bool first = std::exchange(first_, false);
    switch (recasing_) {
      case Recasing::kUpper:
        return CaseMapping::kUpper;
      case Recasing::kLower:
        return CaseMapping::kLower;
      case Recasing::kSwap:
        return (character_flags(c) & kUpper) != 0 ? CaseMapping::kLower : CaseMapping::kUpper;
      case Recasing::kCapitalize:
        return first ? CaseMapping::kTitle : CaseMapping::kLower;
      case Recasing::kTitle: {
        const bool inside =
            std::exchange(in_word_, (character_flags(c) & (kUpper | kLower | kTitle)) != 0);
        return inside ? CaseMapping::kLower : CaseMapping::kTitle;
      }
      case Recasing::kWords: {
        const bool boundary = starts_word(c);
        const bool inside = std::exchange(in_word_, !boundary);
        // Each run of boundary characters is a word of its own there.
        return inside || boundary ? CaseMapping::kLower : CaseMapping::kUpper;
      }
    }
    return CaseMapping::kLower;
  }

 private:
  Recasing recasing_;
  bool first_ = true;
  bool in_word_ = false;
};

std::vector<char32_t> code_points(std::string_view text) {
  std::vector<char32_t> out;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    out.push_back(c.value);
    at += c.length;
  }
  return out;
}

Value split_at_blanks(const MarkedText& text, int64_t limit, TemplateBudget& budget) {
  const std::string_view bytes = text.bytes();
  budget.walk(bytes.size());
  ListBuilder parts(budget);
  size_t at = 0;
  for (;;) {
    size_t end = bytes.size();
    const bool last = limit >= 0 && static_cast<int64_t>(parts.size()) == limit;
    while (at < end) {
      const CodePoint c = code_point_at(bytes, at);
      if (!is_space(c.value)) break;
      at += c.length;
    }
    if (at == end) break;
    if (!last) {
      end = at;
      while (end < bytes.size()) {
        const CodePoint c = code_point_at(bytes, end);
        if (is_space(c.value)) break;
        end += c.length;
      }
    }
    parts.add(make_slice(text, at, end, budget));
    at = end;
  }
  return parts.take();
}

Value split_at_blanks_from_right(const MarkedText& text, int64_t limit, TemplateBudget& budget) {
  const std::string_view bytes = text.bytes();
  budget.walk(bytes.size());
  ListBuilder parts(budget);
  size_t end = bytes.size();
  for (;;) {
    size_t begin = 0;
    while (end > 0) {
      const CodePoint c = code_point_before(bytes, end);
      if (!is_space(c.value)) break;
      end -= c.length;
    }
    if (end == 0) break;
    if (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
      begin = end;
      while (begin > 0) {
        const CodePoint c = code_point_before(bytes, begin);
        if (is_space(c.value)) break;
        begin -= c.length;
      }
    }
    parts.add(make_slice(text, begin, end, budget));
    end = begin;
  }
  std::reverse(parts.items().begin(), parts.items().end());
  return parts.take();
}

}  // namespace

Value recased(const MarkedText& text, Recasing recasing, TemplateBudget& budget) {
  const std::string_view bytes = text.bytes();
  budget.walk(2 * bytes.size());
  CaseChooser chooser(recasing);
  MarkedTextBuilder out(budget);
  std::string buffer;
  size_t base = 0;
  text.each_piece([&](std::string_view piece, Origin origin) {
    buffer.clear();
    for (size_t at = 0; at < piece.size();) {
      const CodePoint c = code_point_at(piece, at);
      const CaseMapping mapping = chooser.next(c.value);
      if (c.value == kCapitalSigma && mapping == CaseMapping::kLower &&
          is_final_sigma(bytes, base + at)) {
        append_code_point(buffer, kFinalSigma);
      } else {
        append_mapped(buffer, c.value, mapping);
      }
      at += c.length;
      if (buffer.size() >= kBufferBytes) {
        out.add(buffer, origin);
        buffer.clear();
      }
    }
    base += piece.size();
    out.add(buffer, origin);
  });
  return Value::string(out.take());
}

Value stripped(const MarkedText& text, const MarkedText* characters, StripEnds ends,
               TemplateBudget& budget) {
  const std::string_view bytes = text.bytes();
  std::vector<char32_t> set;
  Charge charge(budget);
  if (characters != nullptr) {
    budget.walk(characters->size());
    charge.grow(characters->size() * sizeof(char32_t));
    set = code_points(characters->bytes());
    std::sort(set.begin(), set.end());
  }
  const auto goes = [&](char32_t c) {
    return characters == nullptr ? is_space(c) : std::binary_search(set.begin(), set.end(), c);
  };
  budget.scan(bytes.size());
  size_t begin = 0;
  size_t end = bytes.size();
  while (ends.left && begin < end) {
    const CodePoint c = code_point_at(bytes, begin);
    if (!goes(c.value)) break;
    begin += c.length;
  }
  while (ends.right && begin < end) {
    const CodePoint c = code_point_before(bytes, end);
    if (!goes(c.value)) break;
    end -= c.length;
  }
  return make_slice(text, begin, end, budget);
}

Value replaced(const MarkedText& text, const MarkedText& from, const MarkedText& to, int64_t count,
               TemplateBudget& budget) {
  const std::string_view bytes = text.bytes();
  budget.scan(bytes.size());
  MarkedTextBuilder out(budget);
  size_t at = 0;
  if (from.empty()) {
    // In front of every character and at the end.
    if (count < 0) budget.foresee(count_code_points(bytes) + 1, to.size());
    for (; count != 0; --count) {
      out.add(to);
      budget.step();
      if (at == bytes.size()) return Value::string(out.take());
      const size_t next = at + code_point_at(bytes, at).length;
      out.add(text, at, next);
      at = next;
    }
  }
  while (count != 0 && !from.empty()) {
    const size_t found = find_first(bytes, from.bytes(), at);
    if (found == std::string_view::npos) break;
    budget.step();
    out.add(text, at, found);
    out.add(to);
    at = found + from.size();
    --count;
  }
  out.add(text, at, bytes.size());
  return Value::string(out.take());
}

Value joined_items(const MarkedText& separator, const Value::Items& items, TemplateBudget& budget) {
  MarkedTextBuilder out(budget);
  if (!items.empty()) budget.foresee(items.size() - 1, separator.size());
  bool first = true;
  for (const Value& item : items) {
    budget.step();
    if (!first) out.add(separator);
    first = false;
    write_text(item, out, budget);
  }
  return Value::string(out.take());
}

Value split_text(const MarkedText& text, const MarkedText* separator, int64_t limit,
                 bool from_right, TemplateBudget& budget) {
  budget.scan(text.size());
  if (separator == nullptr) {
    return from_right ? split_at_blanks_from_right(text, limit, budget)
                      : split_at_blanks(text, limit, budget);
  }
  if (separator->empty()) throw Error(ErrorCode::kInvalidArgument, "split: an empty separator");
  const std::string_view bytes = text.bytes();
  std::vector<size_t> cuts;  // where separators begin
  Charge charge(budget);
  if (from_right) {
    size_t end = bytes.size();
    while (limit < 0 || static_cast<int64_t>(cuts.size()) < limit) {
      const size_t found = find_last(bytes, separator->bytes(), end);
      if (found == std::string_view::npos) break;
      charge.grow(sizeof(size_t));
      cuts.push_back(found);
      end = found;
    }
    std::reverse(cuts.begin(), cuts.end());
  } else {
    size_t at = 0;
    while (limit < 0 || static_cast<int64_t>(cuts.size()) < limit) {
      const size_t found = find_first(bytes, separator->bytes(), at);
      if (found == std::string_view::npos) break;
      charge.grow(sizeof(size_t));
      cuts.push_back(found);
      at = found + separator->size();
    }
  }
  ListBuilder parts(budget);
  parts.reserve(cuts.size() + 1);
  size_t at = 0;
  for (const size_t cut : cuts) {
    parts.add(make_slice(text, at, cut, budget));
    at = cut + separator->size();
  }
  parts.add(make_slice(text, at, bytes.size(), budget));
  return parts.take();
}

Value split_lines(const MarkedText& text, bool keep_ends, TemplateBudget& budget) {
  const std::string_view bytes = text.bytes();
  budget.walk(bytes.size());
  ListBuilder lines(budget);
  size_t begin = 0;
  size_t at = 0;
  while (at < bytes.size()) {
    const CodePoint c = code_point_at(bytes, at);
    const size_t end = at;
    at += c.length;
    if (!is_line_end(c.value)) continue;
    if (c.value == '\r' && at < bytes.size() && bytes[at] == '\n') ++at;
    lines.add(make_slice(text, begin, keep_ends ? at : end, budget));
    begin = at;
  }
  if (begin < bytes.size()) lines.add(make_slice(text, begin, bytes.size(), budget));
  return lines.take();
}

Value aligned(const MarkedText& text, int64_t width, const MarkedText& fill, Alignment alignment,
              TemplateBudget& budget) {
  if (count_code_points(fill.bytes()) != 1) {
    throw Error(ErrorCode::kInvalidArgument, "the fill of a field is one character");
  }
  budget.scan(text.size());
  const auto length = static_cast<int64_t>(count_code_points(text.bytes()));
  const int64_t room = std::max<int64_t>(width - length, 0);
  int64_t left = alignment == Alignment::kRight ? room : 0;
  // As Python does: an odd blank goes left of a text of odd width.
  if (alignment == Alignment::kCenter) left = room / 2 + (room & width & 1);
  budget.foresee(static_cast<uint64_t>(room), fill.size());
  MarkedTextBuilder out(budget);
  for (int64_t i = 0; i < left; ++i) out.add(fill);
  out.add(text);
  for (int64_t i = left; i < room; ++i) out.add(fill);
  return Value::string(out.take());
}

}  // namespace strata::text
