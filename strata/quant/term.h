#pragma once

#include <cstddef>
#include <cstdint>

namespace strata::quant {

// A weight block taken apart into integers. This one form serves scalar decode, the canonical dot
// product (canonical.h) and whoever re-lays weights for a kernel.
//
//   value j = d * scale[j/16] * code[j] - dmin * min[j/16]
//
// A term holds TypeTraits::term_values values: the 256 of a K or IQ block, the 32 of the smaller
// blocks, 32 of the 64 or 128 of Q2_0 and Q1_0 (which share d), the 16 of one NVFP4 scale. Powers
// of two that a format puts beside d are folded into d, so scale and code stay integers; this is
// exact.
struct Term {
  static constexpr int kMaxValues = 256;
  static constexpr int kGroup = 16;  // values that share scale and min

  float d = 0;
  float dmin = 0;  // types with TypeTraits::has_min; else unset, like min
  alignas(64) int8_t code[kMaxValues];
  int8_t scale[kMaxValues / kGroup];
  int8_t min[kMaxValues / kGroup];
};

// Takes term i of the block apart. Every bit pattern is a block; none is refused.
using UnpackTerm = void (*)(const std::byte* block, int i, Term& out);

}  // namespace strata::quant
