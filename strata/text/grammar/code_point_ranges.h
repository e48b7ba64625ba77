#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace strata::text {

// Characters first..last, both inside.
struct CodePointRange {
  char32_t first = 0;
  char32_t last = 0;
  bool operator==(const CodePointRange&) const = default;
};
using CodePointRanges = std::vector<CodePointRange>;

inline constexpr char32_t kLastCodePoint = 0x10FFFF;

// Not a character that UTF-8 can write: a surrogate, or above U+10FFFF.
constexpr bool is_scalar(char32_t c) { return c <= kLastCodePoint && (c < 0xD800 || c > 0xDFFF); }

// The same set sorted, disjoint, without neighbours, and without what UTF-8 cannot write.
CodePointRanges normalised(CodePointRanges ranges);
// These two take and give normalised sets.
CodePointRanges complement(const CodePointRanges& ranges);
CodePointRanges intersection(const CodePointRanges& a, const CodePointRanges& b);

// Writes a character that is_scalar() as UTF-8.
void append_utf8(std::string& out, char32_t c);

struct ByteBounds {
  uint8_t first = 0;
  uint8_t last = 0;
};
// The strings whose i-th byte lies in bytes[i].
struct ByteSequence {
  ByteBounds bytes[4];
  int n_bytes = 0;
};
// The UTF-8 of a normalised range as few sequences: at most about a dozen.
void append_utf8_sequences(CodePointRange range, std::vector<ByteSequence>& out);

}  // namespace strata::text
