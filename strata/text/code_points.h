#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace strata::text {

// Characters as Python's str has them: code points and their classes. A byte that is not UTF-8 is a
// character of its own with the value 0xDC00 + byte, and append_code_point() writes it back.

struct CodePoint {
  char32_t value;
  uint8_t length;  // bytes
};
// `at` is inside the text.
CodePoint code_point_at(std::string_view text, size_t at);
// The one that ends in front of `end`; `end` is above 0.
CodePoint code_point_before(std::string_view text, size_t end);
void append_code_point(std::string& out, char32_t value);

size_t count_code_points(std::string_view text);
// Bytes in front of the index-th character, counted from byte `from`; the size if there are fewer.
size_t code_point_offset(std::string_view text, size_t index, size_t from = 0);

bool is_space(char32_t c);
// CharacterFlag bits.
uint32_t character_flags(char32_t c);
// str.splitlines ends a line here; "\r\n" is one end.
bool is_line_end(char32_t c);

// Narrows [begin, end) to what is left without blanks at both ends.
void trim_spaces(std::string_view text, size_t& begin, size_t& end);

enum class CaseMapping : uint8_t { kUpper, kLower, kTitle };
// Writes the mapped character: one to three.
void append_mapped(std::string& out, char32_t c, CaseMapping mapping);
// A capital sigma at byte `at` becomes a final one when lowered.
bool is_final_sigma(std::string_view text, size_t at);

}  // namespace strata::text
