// The K family: 256 values, groups of 16 or 32 under integer scales, those under one f16.
//
//   Q2_K  0 scales[16]; 16 qs[64]; 80 f16 d; 82 f16 dmin
//   Q3_K  0 hmask[32]; 32 qs[64]; 96 scales[12]; 108 f16 d
//   Q4_K  0 f16 d; 2 f16 dmin; 4 scales[12]; 16 qs[128]
//   Q5_K  0 f16 d; 2 f16 dmin; 4 scales[12]; 16 qh[32]; 48 qs[128]
//   Q6_K  0 ql[128]; 128 qh[64]; 192 int8 scales[16]; 208 f16 d
#include "strata/quant/bits.h"
#include "strata/quant/families.h"

namespace strata::quant {
namespace {

constexpr int kValues = 256;
constexpr int kGroups = 16;  // of 16 values

// Q2_K, Q3_K: two bits; each byte of a half serves the four quarters of 128 values.
uint32_t quarter_pair(const std::byte* qs, int j) {
  const int r = j % 128;
  return pair(load_u8(qs + 32 * (j / 128) + r % 32), r / 32);
}

// Q4_K, Q5_K: eight groups of 32, six bits each for scale and min, in 12 bytes.
void unpack_scales_and_mins(const std::byte* s, Term& out) {
  for (int g = 0; g < 8; ++g) {
    uint32_t scale = 0;
    uint32_t min = 0;
    if (g < 4) {
      scale = load_u8(s + g) & 63U;
      min = load_u8(s + g + 4) & 63U;
    } else {
      scale = nibble(load_u8(s + g + 4), 0) | pair(load_u8(s + g - 4), 3) << 4;
      min = nibble(load_u8(s + g + 4), 1) | pair(load_u8(s + g), 3) << 4;
    }
    out.scale[2 * g] = out.scale[2 * g + 1] = static_cast<int8_t>(scale);
    out.min[2 * g] = out.min[2 * g + 1] = static_cast<int8_t>(min);
  }
}

// Q4_K, Q5_K: a run of 32 bytes holds two groups, the even one in the low nibbles.
uint32_t group_nibble(const std::byte* qs, int j) {
  const int g = j / 32;
  return nibble(load_u8(qs + 32 * (g / 2) + j % 32), g % 2);
}

}  // namespace

void unpack_q2_k(const std::byte* block, int /*i*/, Term& out) {
  out.d = load_f16(block + 80);
  out.dmin = load_f16(block + 82);
  for (int g = 0; g < kGroups; ++g) {
    out.scale[g] = static_cast<int8_t>(nibble(load_u8(block + g), 0));
    out.min[g] = static_cast<int8_t>(nibble(load_u8(block + g), 1));
  }
  for (int j = 0; j < kValues; ++j) {
    out.code[j] = static_cast<int8_t>(quarter_pair(block + 16, j));
  }
}

void unpack_q3_k(const std::byte* block, int /*i*/, Term& out) {
  out.d = load_f16(block + 108);
  const std::byte* s = block + 96;
  for (int g = 0; g < kGroups; ++g) {
    const uint32_t low = nibble(load_u8(s + g % 8), g / 8);
    const uint32_t high = pair(load_u8(s + 8 + g % 4), g / 4);
    out.scale[g] = static_cast<int8_t>(static_cast<int>(low | high << 4) - 32);
  }
  for (int j = 0; j < kValues; ++j) {
    const uint32_t code = quarter_pair(block + 32, j) | bit(load_u8(block + j % 32), j / 32) << 2;
    out.code[j] = static_cast<int8_t>(static_cast<int>(code) - 4);
  }
}

void unpack_q4_k(const std::byte* block, int /*i*/, Term& out) {
  out.d = load_f16(block);
  out.dmin = load_f16(block + 2);
  unpack_scales_and_mins(block + 4, out);
  for (int j = 0; j < kValues; ++j) {
    out.code[j] = static_cast<int8_t>(group_nibble(block + 16, j));
  }
}

void unpack_q5_k(const std::byte* block, int /*i*/, Term& out) {
  out.d = load_f16(block);
  out.dmin = load_f16(block + 2);
  unpack_scales_and_mins(block + 4, out);
  for (int j = 0; j < kValues; ++j) {
    const uint32_t high = bit(load_u8(block + 16 + j % 32), j / 32);
    out.code[j] = static_cast<int8_t>(group_nibble(block + 48, j) | high << 4);
  }
}

void unpack_q6_k(const std::byte* block, int /*i*/, Term& out) {
  out.d = load_f16(block + 208);
  for (int g = 0; g < kGroups; ++g) out.scale[g] = load_i8(block + 192 + g);
  for (int j = 0; j < kValues; ++j) {
    const int half = j / 128;
    const int k = j % 128 / 32;
    const int l = j % 32;
    const uint32_t low = nibble(load_u8(block + 64 * half + 32 * (k % 2) + l), k / 2);
    const uint32_t high = pair(load_u8(block + 128 + 32 * half + l), k);
    out.code[j] = static_cast<int8_t>(static_cast<int>(low | high << 4) - 32);
  }
}

}  // namespace strata::quant
