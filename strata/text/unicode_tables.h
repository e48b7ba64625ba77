#pragma once

#include <cstddef>
#include <cstdint>

namespace strata::text {

// Each run starts at code point `run >> 9` and has the CharacterFlag bits of `run & 511`.
extern const uint32_t kCharacterRuns[];
extern const size_t kCharacterRunCount;

enum CharacterFlag : uint32_t {
  kAlpha = 1,
  kDecimal = 2,
  kDigit = 4,
  kNumeric = 8,
  kPrintable = 16,
  kUpper = 32,
  kLower = 64,
  kTitle = 128,
  kCaseIgnorable = 256,
};

// Every step-th code point of [first, last] maps to itself plus delta.
struct CaseRange {
  uint32_t first;
  uint32_t last;
  uint32_t step;
  int32_t delta;
};

// One code point that becomes two or three; 0 fills the third place.
struct CaseExpansion {
  uint32_t from;
  uint32_t to[3];
};

extern const CaseRange kUpperRanges[];
extern const size_t kUpperRangeCount;
extern const CaseExpansion kUpperExpansions[];
extern const size_t kUpperExpansionCount;
extern const CaseRange kLowerRanges[];
extern const size_t kLowerRangeCount;
extern const CaseExpansion kLowerExpansions[];
extern const size_t kLowerExpansionCount;
extern const CaseRange kTitleRanges[];
extern const size_t kTitleRangeCount;
extern const CaseExpansion kTitleExpansions[];
extern const size_t kTitleExpansionCount;

}  // namespace strata::text
