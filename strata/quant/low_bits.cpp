// One and two bits a value, blocks longer than 32: the scale serves several terms of 32.
//
//   Q1_0  128 values: 0 f16 d; 2 qs[16]    bit j: 1 is +d, 0 is -d
//   Q2_0   64 values: 0 f16 d; 2 qs[16]    d * (two bits - 1)
#include "strata/quant/bits.h"
#include "strata/quant/families.h"

namespace strata::quant {

void unpack_q1_0(const std::byte* block, int i, Term& out) {
  out.d = load_f16(block);
  out.scale[0] = out.scale[1] = 1;
  const uint32_t bits = load_u32(block + 2 + 4 * i);
  for (int j = 0; j < 32; ++j) out.code[j] = bit(bits, j) != 0 ? int8_t{1} : int8_t{-1};
}

void unpack_q2_0(const std::byte* block, int i, Term& out) {
  out.d = load_f16(block);
  out.scale[0] = out.scale[1] = 1;
  const std::byte* qs = block + 2 + 8 * i;
  for (int j = 0; j < 32; ++j) {
    out.code[j] = static_cast<int8_t>(static_cast<int>(pair(load_u8(qs + j / 4), j % 4)) - 1);
  }
}

}  // namespace strata::quant
