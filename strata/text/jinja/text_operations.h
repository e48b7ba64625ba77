#pragma once

#include <cstdint>

#include "strata/text/jinja/budget.h"
#include "strata/text/value.h"

namespace strata::text {

// String operations that filters and methods share. Positions and counts are in characters; marks
// move with the bytes.

enum class Recasing : uint8_t {
  kUpper,
  kLower,
  kSwap,
  kCapitalize,  // first character as a title, the others lower
  kTitle,       // str.title: a new word behind everything that has no case
  kWords,       // the filter `title`: a new word behind blanks, hyphens and opening brackets
};
Value recased(const MarkedText& text, Recasing recasing, TemplateBudget& budget);

// Without blanks, or without the characters of `characters`, at the chosen ends.
struct StripEnds {
  bool left = true;
  bool right = true;
};
Value stripped(const MarkedText& text, const MarkedText* characters, StripEnds ends,
               TemplateBudget& budget);

// At most `count` replacements; all if it is negative.
Value replaced(const MarkedText& text, const MarkedText& from, const MarkedText& to, int64_t count,
               TemplateBudget& budget);

// The texts of the items of a list, with `separator` between them.
Value joined_items(const MarkedText& separator, const Value::Items& items, TemplateBudget& budget);

// str.split and str.rsplit. A null separator splits at blanks. At most `limit` cuts; all if it is
// negative. Errors: kInvalidArgument for an empty separator.
Value split_text(const MarkedText& text, const MarkedText* separator, int64_t limit,
                 bool from_right, TemplateBudget& budget);
// Lines as a list of strings.
Value split_lines(const MarkedText& text, bool keep_ends, TemplateBudget& budget);

// `width` characters wide, filled with `fill`.
enum class Alignment : uint8_t { kLeft, kRight, kCenter };
Value aligned(const MarkedText& text, int64_t width, const MarkedText& fill, Alignment alignment,
              TemplateBudget& budget);

}  // namespace strata::text
