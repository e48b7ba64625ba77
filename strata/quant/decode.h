#pragma once

#include <cstddef>
#include <span>

#include "strata/quant/types.h"

namespace strata::quant {

// The values of consecutive blocks, as f32. The truth for faster decoders: products are single f32
// multiplications, the min is subtracted after its own rounding, nothing is fused.
// Shapes: out holds a multiple of the block's values; blocks, row_bytes(type, out.size()) bytes at
//         any address.
// Errors: kInvalidArgument if out is no whole number of blocks; kUnsupported for the plain integer
//         and f64 types. No block is refused: scales may be infinite or NaN and give such values.
void decode(Type type, const std::byte* blocks, std::span<float> out);

}  // namespace strata::quant
