#include "strata/text/code_points.h"

#include <algorithm>
#include <span>

#include "strata/text/unicode_tables.h"
#include "strata/text/utf8.h"

namespace strata::text {
namespace {

constexpr char32_t kRawByte = 0xDC00;

struct CaseTable {
  std::span<const CaseRange> ranges;
  std::span<const CaseExpansion> expansions;
};

CaseTable case_table(CaseMapping mapping) {
  switch (mapping) {
    case CaseMapping::kUpper:
      return {{kUpperRanges, kUpperRangeCount}, {kUpperExpansions, kUpperExpansionCount}};
    case CaseMapping::kLower:
      return {{kLowerRanges, kLowerRangeCount}, {kLowerExpansions, kLowerExpansionCount}};
    case CaseMapping::kTitle:
      break;
  }
  return {{kTitleRanges, kTitleRangeCount}, {kTitleExpansions, kTitleExpansionCount}};
}

bool is_cased(uint32_t flags) { return (flags & (kUpper | kLower | kTitle)) != 0; }

}  // namespace

CodePoint code_point_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const Utf8Step step = utf8_step(text.substr(at));
  if (step.status != Utf8Status::kValid) return {kRawByte + first, 1};
  const auto low = [&](size_t i) { return static_cast<char32_t>(byte(i) & 0x3F); };
  switch (step.length) {
    case 2:
      return {static_cast<char32_t>(first & 0x1F) << 6 | low(1), 2};
    case 3:
      return {static_cast<char32_t>(first & 0x0F) << 12 | low(1) << 6 | low(2), 3};
    default:
      return {static_cast<char32_t>(first & 0x07) << 18 | low(1) << 12 | low(2) << 6 | low(3), 4};
  }
}

CodePoint code_point_before(std::string_view text, size_t end) {
  // At most three bytes back is the only start whose character can end here; else it is a byte.
  for (size_t back = 1; back <= 4 && back <= end; ++back) {
    const auto byte = static_cast<unsigned char>(text[end - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const CodePoint c = code_point_at(text.substr(0, end), end - back);
    if (c.length == back) return c;
    break;
  }
  return {kRawByte + static_cast<unsigned char>(text[end - 1]), 1};
}

void append_code_point(std::string& out, char32_t c) {
  const auto put = [&out](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c > kRawByte && c <= kRawByte + 0xFF) {
    put(c - kRawByte);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

size_t count_code_points(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at += code_point_at(text, at).length) ++count;
  return count;
}

size_t code_point_offset(std::string_view text, size_t index, size_t from) {
  size_t at = from;
  while (index > 0 && at < text.size()) {
    at += code_point_at(text, at).length;
    --index;
  }
  return at;
}

bool is_space(char32_t c) {
  if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 28 && c <= 32);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_line_end(char32_t c) {
  return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

uint32_t character_flags(char32_t c) {
  const std::span<const uint32_t> runs(kCharacterRuns, kCharacterRunCount);
  const auto next =
      std::partition_point(runs.begin(), runs.end(), [c](uint32_t run) { return run >> 9 <= c; });
  return next == runs.begin() ? 0 : *(next - 1) & 511;
}

void trim_spaces(std::string_view text, size_t& begin, size_t& end) {
  while (begin < end) {
    const CodePoint c = code_point_at(text, begin);
    if (!is_space(c.value)) break;
    begin += c.length;
  }
  while (begin < end) {
    const CodePoint c = code_point_before(text, end);
    if (!is_space(c.value)) break;
    end -= c.length;
  }
}

void append_mapped(std::string& out, char32_t c, CaseMapping mapping) {
  if (c < 0x80) {
    const bool lower = c >= 'a' && c <= 'z';
    const bool upper = c >= 'A' && c <= 'Z';
    const bool change = mapping == CaseMapping::kLower ? upper : lower;
    out.push_back(static_cast<char>(change ? c ^ 0x20 : c));
    return;
  }
  const CaseTable table = case_table(mapping);
  const auto many = std::partition_point(table.expansions.begin(), table.expansions.end(),
                                         [c](const CaseExpansion& e) { return e.from < c; });
  if (many != table.expansions.end() && many->from == c) {
    for (const uint32_t to : many->to) {
      if (to != 0) append_code_point(out, to);
    }
    return;
  }
  const auto range = std::partition_point(table.ranges.begin(), table.ranges.end(),
                                          [c](const CaseRange& r) { return r.last < c; });
  if (range != table.ranges.end() && range->first <= c && (c - range->first) % range->step == 0) {
    c = static_cast<char32_t>(static_cast<int64_t>(c) + range->delta);
  }
  append_code_point(out, c);
}

bool is_final_sigma(std::string_view text, size_t at) {
  bool cased_before = false;
  for (size_t i = at; i > 0;) {
    const CodePoint c = code_point_before(text, i);
    i -= c.length;
    const uint32_t flags = character_flags(c.value);
    if ((flags & kCaseIgnorable) != 0) continue;
    cased_before = is_cased(flags);
    break;
  }
  if (!cased_before) return false;
  for (size_t i = at + code_point_at(text, at).length; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    i += c.length;
    const uint32_t flags = character_flags(c.value);
    if ((flags & kCaseIgnorable) != 0) continue;
    return !is_cased(flags);
  }
  return true;
}

}  // namespace strata::text
