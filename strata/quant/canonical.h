#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/quant/types.h"

// The canonical arithmetic of matrix products: which rounding happens where, in which order. This
// file is the plain, slow form of it. A fast kernel on any machine gives the same bits.
//
// All f32 operations round to nearest, ties to even, with subnormals kept. fma rounds once.
//
// 1. Quantised activations. A row x of n values is cut into blocks of B (256 or 32, by the weight's
//    type: activation_block). For each block:
//      amax = max |x|
//      if a value is NaN or infinite:  dx = NaN (bits 0x7FC00000), every q = 0
//      else if amax < 2^-100:          dx = +0, every q = 0
//      else:                           dx = amax / 127;  inverse = 127 / amax  (f32 divisions)
//                                      q = x * inverse, rounded to f32, then to an integer (ties to
//                                      even), held within -127..127
//    So a NaN or infinity in x makes every product of the row NaN; and no quotient overflows.
//
// 2. One block's term (term.h: value j = d * scale * code - dmin * min). In exact integers:
//      isum = sum of scale[j/16] * code[j] * q[j]        imin = sum of min[j/16] * q[j]
//    |isum| < 2^27. Powers of two that the format has beside d are folded into d: IQ2 d/8 and odd
//    scales 2s+1; IQ3_XXS d/4 and 2s+1; IQ1 d/8 and codes 8*grid+-1; MXFP4 and NVFP4 half the scale
//    and twice the code. Q4_1 and Q5_1: min = 1, dmin = -m.
//      acc = fma(f32(isum), d * dx, acc)
//      acc = fma(-f32(imin), dmin * dx, acc)             only types with a min
//    with f32(isum) rounded once and d * dx one rounded product.
//    Q1_0, Q2_0: 32 values are a term, with the d of their block. NVFP4: each 16 values under one
//    scale are a term; the two terms of an activation block follow each other.
//
// 3. One row: nb = n / B activation blocks lie in 8 contiguous segments. Segment s holds the blocks
//    floor(s * nb / 8) up to, not including, floor((s + 1) * nb / 8). In each, acc starts at +0 and
//    takes its blocks in ascending order. An empty segment is +0.
//      result = (((((((seg0 + seg1) + seg2) + seg3) + seg4) + seg5) + seg6) + seg7)
//
// 4. F32, F16, BF16 weights: decoded to f32 (exact), against f32 activations, in 32 lanes. Lane l
//    starts at +0 and takes the elements l, l+32, l+64, ... in ascending order:
//      lane = fma(a[i], b[i], lane)
//    A short tail leaves the other lanes as they are. Then lane[l] += lane[l + 16] for l < 16, the
//    same with 8, 4, 2 and 1; the result is lane[0].
namespace strata::quant {

// A quantised row of activations: value j is about scale[j / block] * q[j].
struct QuantRow {
  std::vector<int8_t> q;
  std::vector<float> scale;
  int block = 0;
};

// B of the rules above: 256 for the types of 256-value blocks, else 32. The type must be quantised.
int activation_block(Type type);

// Rule 1. n must be a multiple of block, block one of 32 and 256.
QuantRow quantize_row(const float* x, int n, int block);

// Rules 2 and 3. weight_row is a row of n values at any address; x has n values in blocks of
// activation_block(type); n is a multiple of that and of the type's block.
float dot_canonical(Type type, const std::byte* weight_row, int n, const QuantRow& x);

// Rule 4.
float dot_float(const float* a, const float* b, int n);

}  // namespace strata::quant
