// FP4 codes under a power of two or a small float scale. Codes are stored doubled, scales halved.
//
//   MXFP4  32 values: 0 u8 e (E8M0); 1 qs[16], split nibbles    2^(e-127) * E2M1
//   NVFP4  64 values: 0 u8 d[4] (UE4M3); 4 qs[32]; each scale has 16 values in 8 bytes, the low
//          nibbles first                                        UE4M3(d[s]) * E2M1
#include "strata/quant/bits.h"
#include "strata/quant/codebooks.h"
#include "strata/quant/families.h"

namespace strata::quant {

void unpack_mxfp4(const std::byte* block, int /*i*/, Term& out) {
  out.d = e8m0_half_to_f32(load_u8(block));
  out.scale[0] = out.scale[1] = 1;
  for (int j = 0; j < 32; ++j) out.code[j] = kFp4Doubled[split_nibble(block + 1, j)];
}

void unpack_nvfp4(const std::byte* block, int i, Term& out) {
  out.d = 0.5F * ue4m3_to_f32(load_u8(block + i));
  out.scale[0] = 1;
  const std::byte* qs = block + 4 + 8 * i;
  for (int j = 0; j < 16; ++j) out.code[j] = kFp4Doubled[nibble(load_u8(qs + j % 8), j / 8)];
}

}  // namespace strata::quant
