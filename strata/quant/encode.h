#pragma once

#include <cstddef>
#include <span>

#include "strata/quant/types.h"

namespace strata::quant {

// Whether encode() makes this type: F32 F16 BF16 Q4_0 Q8_0 Q4_K Q6_K IQ4_NL.
bool can_encode(Type type);

// Values to blocks, each code rounded to the nearest the block's scale allows, ties to even. Scales
// come from the range alone; no search weighs errors. Finite values beyond what a type can hold
// become its largest value, never infinity.
// Shapes: x holds a multiple of the block's values; out, row_bytes(type, x.size()) bytes at any
//         address.
// Errors: kInvalidArgument if x is no whole number of blocks or holds NaN or infinity (names the
//         index; out may be partly written); kUnsupported if can_encode is false.
void encode(Type type, std::span<const float> x, std::byte* out);

}  // namespace strata::quant
