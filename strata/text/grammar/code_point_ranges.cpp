#include "strata/text/grammar/code_point_ranges.h"

#include <algorithm>

namespace strata::text {
namespace {

constexpr char32_t kBeforeSurrogates = 0xD7FF;
constexpr char32_t kBehindSurrogates = 0xE000;

// Splits until each byte of first..last varies on its own.
void split(char32_t first, char32_t last, int n_bytes, std::vector<ByteSequence>& out) {
  for (int i = 1; i < n_bytes; ++i) {
    const char32_t low = (char32_t{1} << (6 * i)) - 1;  // what the last i bytes hold
    if ((first & ~low) == (last & ~low)) continue;
    if ((first & low) != 0) {
      split(first, first | low, n_bytes, out);
      split((first | low) + 1, last, n_bytes, out);
      return;
    }
    if ((last & low) != low) {
      split(first, (last & ~low) - 1, n_bytes, out);
      split(last & ~low, last, n_bytes, out);
      return;
    }
  }
  std::string from;
  std::string to;
  append_utf8(from, first);
  append_utf8(to, last);
  ByteSequence sequence;
  sequence.n_bytes = n_bytes;
  for (int i = 0; i < n_bytes; ++i) {
    sequence.bytes[i] = {static_cast<uint8_t>(from[i]), static_cast<uint8_t>(to[i])};
  }
  out.push_back(sequence);
}

}  // namespace

CodePointRanges normalised(CodePointRanges ranges) {
  CodePointRanges pieces;
  for (const CodePointRange& range : ranges) {
    const CodePointRange low{range.first, std::min(range.last, kBeforeSurrogates)};
    const CodePointRange high{std::max(range.first, kBehindSurrogates),
                              std::min(range.last, kLastCodePoint)};
    if (low.first <= low.last) pieces.push_back(low);
    if (high.first <= high.last) pieces.push_back(high);
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const CodePointRange& a, const CodePointRange& b) { return a.first < b.first; });
  CodePointRanges merged;
  for (const CodePointRange& piece : pieces) {
    if (!merged.empty() && piece.first <= merged.back().last + 1) {
      merged.back().last = std::max(merged.back().last, piece.last);
    } else {
      merged.push_back(piece);
    }
  }
  return merged;
}

CodePointRanges complement(const CodePointRanges& ranges) {
  CodePointRanges rest;
  char32_t next = 0;
  for (const CodePointRange& range : ranges) {
    if (range.first > next) rest.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) rest.push_back({next, kLastCodePoint});
  return normalised(std::move(rest));
}

CodePointRanges intersection(const CodePointRanges& a, const CodePointRanges& b) {
  CodePointRanges both;
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    const char32_t first = std::max(a[i].first, b[j].first);
    const char32_t last = std::min(a[i].last, b[j].last);
    if (first <= last) both.push_back({first, last});
    if (a[i].last < b[j].last) {
      ++i;
    } else {
      ++j;
    }
  }
  return both;
}

void append_utf8(std::string& out, char32_t c) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((c >> shift) & 0x3F)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

void append_utf8_sequences(CodePointRange range, std::vector<ByteSequence>& out) {
  constexpr char32_t kLastOfLength[] = {0x7F, 0x7FF, 0xFFFF, kLastCodePoint};
  char32_t first = range.first;
  for (int n_bytes = 1; n_bytes <= 4 && first <= range.last; ++n_bytes) {
    const char32_t last = std::min(range.last, kLastOfLength[n_bytes - 1]);
    if (first > last) continue;
    split(first, last, n_bytes, out);
    first = last + 1;
  }
}

}  // namespace strata::text
