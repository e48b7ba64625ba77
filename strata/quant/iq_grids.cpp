// The IQ family: 256 values. Octets of 8 values come from a codebook, except IQ4_XS. Group g has 32
// values, octet l is one of its four, octet k = 4 * g + l one of the 32.
//
//   IQ1_S    0 f16 d; 2 qs[32]; 34 u16 qh[8]
//   IQ1_M    0 qs[32]; 32 qh[16]; 48 u16 sc[4]: d is spread over their upper nibbles
//   IQ2_XXS  0 f16 d; 2 {u32 indices, u32 signs and scale}[8]
//   IQ2_XS   0 f16 d; 2 u16 q[32]; 66 scales[8]
//   IQ2_S    0 f16 d; 2 qs[32]; 34 signs[32]; 66 qh[8]; 74 scales[8]
//   IQ3_XXS  0 f16 d; 2 qs[64]; 66 u32 signs and scale[8]
//   IQ3_S    0 f16 d; 2 qs[64]; 66 qh[8]; 74 signs[32]; 106 scales[4]
//   IQ4_XS   0 f16 d; 2 u16 sh; 4 sl[4]; 8 qs[128]
//
// Scales of the form d * (0.5 + s) / 4 are kept as (d / 8) * (2 * s + 1), and d * (0.5 + s) / 2 as
// (d / 4) * (2 * s + 1). IQ1 values grid +- 1/8 are kept as (8 * grid +- 1) under d / 8.
#include "strata/quant/bits.h"
#include "strata/quant/codebooks.h"
#include "strata/quant/families.h"

namespace strata::quant {
namespace {

constexpr int kGroups = 8;
constexpr int kOctets = 32;

int8_t odd_scale(uint32_t s) { return static_cast<int8_t>(2 * s + 1); }

// Group g of 32 has two scales of 16; most types give both the same.
void set_group_scale(Term& out, int g, int8_t scale) {
  out.scale[2 * g] = out.scale[2 * g + 1] = scale;
}

// count values from position j on, negated where signs has a one.
void put_signed(Term& out, int j, const int8_t* entry, int count, uint32_t signs) {
  for (int i = 0; i < count; ++i) {
    out.code[j + i] = bit(signs, i) != 0 ? static_cast<int8_t>(-entry[i]) : entry[i];
  }
}

// An octet of IQ1: every value is shifted by an eighth, up or down.
void put_shifted(Term& out, int k, uint32_t index, bool down) {
  for (int i = 0; i < 8; ++i) {
    out.code[8 * k + i] = static_cast<int8_t>(8 * kIq1sGrid[index][i] + (down ? -1 : 1));
  }
}

}  // namespace

void unpack_iq1_s(const std::byte* block, int /*i*/, Term& out) {
  out.d = 0.125F * load_f16(block);
  for (int k = 0; k < kOctets; ++k) {
    const uint32_t high = load_u16(block + 34 + 2 * (k / 4));
    const uint32_t index = load_u8(block + 2 + k) | ((high >> (3 * (k % 4))) & 7U) << 8;
    put_shifted(out, k, index, bit(high, 15) != 0);
    set_group_scale(out, k / 4, odd_scale((high >> 12) & 7U));
  }
}

void unpack_iq1_m(const std::byte* block, int /*i*/, Term& out) {
  uint32_t d_bits = 0;
  for (int i = 0; i < 4; ++i) d_bits |= nibble(load_u16(block + 48 + 2 * i), 3) << (4 * i);
  out.d = 0.125F * f16_to_f32(static_cast<uint16_t>(d_bits));
  for (int half = 0; half < 2 * kGroups; ++half) {
    const uint32_t scales = load_u16(block + 48 + 2 * (half / 4));
    out.scale[half] = odd_scale((scales >> (3 * (half % 4))) & 7U);
  }
  for (int k = 0; k < kOctets; ++k) {
    const uint32_t high = nibble(load_u8(block + 32 + k / 2), k % 2);
    put_shifted(out, k, load_u8(block + k) | (high & 7U) << 8, bit(high, 3) != 0);
  }
}

void unpack_iq2_xxs(const std::byte* block, int /*i*/, Term& out) {
  out.d = 0.125F * load_f16(block);
  for (int g = 0; g < kGroups; ++g) {
    const std::byte* indices = block + 2 + 8 * g;
    const uint32_t rest = load_u32(indices + 4);
    set_group_scale(out, g, odd_scale(rest >> 28));
    for (int l = 0; l < 4; ++l) {
      const int8_t* entry = kIq2xxsGrid[load_u8(indices + l)].data();
      put_signed(out, 32 * g + 8 * l, entry, 8, sign_byte(rest >> (7 * l)));
    }
  }
}

void unpack_iq2_xs(const std::byte* block, int /*i*/, Term& out) {
  out.d = 0.125F * load_f16(block);
  for (int k = 0; k < kOctets; ++k) {
    const uint32_t q = load_u16(block + 2 + 2 * k);
    put_signed(out, 8 * k, kIq2xsGrid[q & 511U].data(), 8, sign_byte(q >> 9));
    out.scale[k / 2] = odd_scale(nibble(load_u8(block + 66 + k / 4), k % 4 / 2));
  }
}

void unpack_iq2_s(const std::byte* block, int /*i*/, Term& out) {
  out.d = 0.125F * load_f16(block);
  for (int k = 0; k < kOctets; ++k) {
    const uint32_t high = pair(load_u8(block + 66 + k / 4), k % 4);
    const uint32_t index = load_u8(block + 2 + k) | high << 8;
    put_signed(out, 8 * k, kIq2sGrid[index].data(), 8, load_u8(block + 34 + k));
    out.scale[k / 2] = odd_scale(nibble(load_u8(block + 74 + k / 4), k % 4 / 2));
  }
}

void unpack_iq3_xxs(const std::byte* block, int /*i*/, Term& out) {
  out.d = 0.25F * load_f16(block);
  for (int g = 0; g < kGroups; ++g) {
    const uint32_t rest = load_u32(block + 66 + 4 * g);
    set_group_scale(out, g, odd_scale(rest >> 28));
    for (int m = 0; m < 8; ++m) {
      const int8_t* entry = kIq3xxsGrid[load_u8(block + 2 + 8 * g + m)].data();
      const uint32_t signs = sign_byte(rest >> (7 * (m / 2)));
      put_signed(out, 32 * g + 4 * m, entry, 4, signs >> (4 * (m % 2)));
    }
  }
}

void unpack_iq3_s(const std::byte* block, int /*i*/, Term& out) {
  out.d = load_f16(block);
  for (int g = 0; g < kGroups; ++g) {
    set_group_scale(out, g, odd_scale(nibble(load_u8(block + 106 + g / 2), g % 2)));
    const uint32_t high = load_u8(block + 66 + g);
    for (int m = 0; m < 8; ++m) {
      const uint32_t index = load_u8(block + 2 + 8 * g + m) | bit(high, m) << 8;
      const uint32_t signs = load_u8(block + 74 + 4 * g + m / 2);
      put_signed(out, 32 * g + 4 * m, kIq3sGrid[index].data(), 4, signs >> (4 * (m % 2)));
    }
  }
}

void unpack_iq4_xs(const std::byte* block, int /*i*/, Term& out) {
  out.d = load_f16(block);
  const uint32_t high = load_u16(block + 2);
  for (int g = 0; g < kGroups; ++g) {
    const uint32_t scale = nibble(load_u8(block + 4 + g / 2), g % 2) | pair(high, g) << 4;
    set_group_scale(out, g, static_cast<int8_t>(static_cast<int>(scale) - 32));
    for (int j = 0; j < 32; ++j) {
      out.code[32 * g + j] = kNonLinear[split_nibble(block + 8 + 16 * g, j)];
    }
  }
}

}  // namespace strata::quant
