// Blocks of 32 values with one scale: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4_NL.
//
//   Q4_0    0 f16 d; 2 qs[16]                       d * (nibble - 8)
//   Q4_1    0 f16 d; 2 f16 m; 4 qs[16]              d * nibble + m
//   Q5_0    0 f16 d; 2 u32 qh; 6 qs[16]             d * (nibble + 16 * bit j of qh - 16)
//   Q5_1    0 f16 d; 2 f16 m; 4 u32 qh; 8 qs[16]    d * (nibble + 16 * bit j of qh) + m
//   Q8_0    0 f16 d; 2 int8 qs[32]                  d * qs[j]
//   IQ4_NL  0 f16 d; 2 qs[16]                       d * kNonLinear[nibble]
#include <algorithm>
#include <cmath>

#include "strata/quant/bits.h"
#include "strata/quant/codebooks.h"
#include "strata/quant/encode_steps.h"
#include "strata/quant/families.h"

namespace strata::quant {
namespace {

constexpr int kValues = 32;

void set_scale(const std::byte* block, Term& out) {
  out.d = load_f16(block);
  out.scale[0] = out.scale[1] = 1;
}

// "+ m" as the min of the general form: - dmin * 1.
void set_offset(const std::byte* block, Term& out) {
  out.dmin = -load_f16(block + 2);
  out.min[0] = out.min[1] = 1;
}

}  // namespace

void unpack_q4_0(const std::byte* block, int /*i*/, Term& out) {
  set_scale(block, out);
  for (int j = 0; j < kValues; ++j) {
    out.code[j] = static_cast<int8_t>(static_cast<int>(split_nibble(block + 2, j)) - 8);
  }
}

void unpack_q4_1(const std::byte* block, int /*i*/, Term& out) {
  set_scale(block, out);
  set_offset(block, out);
  for (int j = 0; j < kValues; ++j) {
    out.code[j] = static_cast<int8_t>(split_nibble(block + 4, j));
  }
}

void unpack_q5_0(const std::byte* block, int /*i*/, Term& out) {
  set_scale(block, out);
  const uint32_t high = load_u32(block + 2);
  for (int j = 0; j < kValues; ++j) {
    const uint32_t code = split_nibble(block + 6, j) | bit(high, j) << 4;
    out.code[j] = static_cast<int8_t>(static_cast<int>(code) - 16);
  }
}

void unpack_q5_1(const std::byte* block, int /*i*/, Term& out) {
  set_scale(block, out);
  set_offset(block, out);
  const uint32_t high = load_u32(block + 4);
  for (int j = 0; j < kValues; ++j) {
    out.code[j] = static_cast<int8_t>(split_nibble(block + 8, j) | bit(high, j) << 4);
  }
}

void unpack_q8_0(const std::byte* block, int /*i*/, Term& out) {
  set_scale(block, out);
  for (int j = 0; j < kValues; ++j) out.code[j] = load_i8(block + 2 + j);
}

void unpack_iq4_nl(const std::byte* block, int /*i*/, Term& out) {
  set_scale(block, out);
  for (int j = 0; j < kValues; ++j) out.code[j] = kNonLinear[split_nibble(block + 2, j)];
}

void encode_q4_0(const float* x, std::byte* block) {
  // The farthest value takes code -8, the end of the longer side.
  const double d = store_scale(block, farthest({x, kValues}) / -8.0);
  for (int j = 0; j < kValues / 2; ++j) {
    const int low = nearest_code(x[j], d, -8, 7) + 8;
    const int high = nearest_code(x[j + kValues / 2], d, -8, 7) + 8;
    store_u8(block + 2 + j, static_cast<uint32_t>(low | high << 4));
  }
}

void encode_q8_0(const float* x, std::byte* block) {
  const double d = store_scale(block, std::abs(farthest({x, kValues})) / 127.0);
  for (int j = 0; j < kValues; ++j) {
    store_u8(block + 2 + j, static_cast<uint32_t>(nearest_code(x[j], d, -127, 127)));
  }
}

void encode_iq4_nl(const float* x, std::byte* block) {
  const double d = store_scale(block, farthest({x, kValues}) / kNonLinear[0]);
  for (int j = 0; j < kValues / 2; ++j) {
    const int low = nearest_entry(x[j], d, kNonLinear);
    const int high = nearest_entry(x[j + kValues / 2], d, kNonLinear);
    store_u8(block + 2 + j, static_cast<uint32_t>(low | high << 4));
  }
}

}  // namespace strata::quant
