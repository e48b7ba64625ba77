#pragma once

#include <bit>
#include <cstdint>

// The small float formats, as bit code: the same on every machine, and equal to what the
// conversion instructions of x86 (F16C) and of the cards give, NaN included.
namespace strata::quant {

// IEEE binary16 (1-5-10). Exact; a signalling NaN becomes quiet.
constexpr float f16_to_f32(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000U) << 16;
  const uint32_t exponent = (h >> 10) & 31U;
  const uint32_t mantissa = h & 0x3FFU;
  if (exponent == 31) {
    const uint32_t quiet = mantissa != 0 ? 0x400000U : 0U;
    return std::bit_cast<float>(sign | 0x7F800000U | quiet | (mantissa << 13));
  }
  if (exponent == 0) {
    // Subnormal: an integer times 2^-24, both exact in f32.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

// Rounds to nearest, ties to even; beyond 65520 gives infinity; NaN stays NaN and becomes quiet.
constexpr uint16_t f32_to_f16(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  const uint32_t sign = (bits >> 16) & 0x8000U;
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) {
    return static_cast<uint16_t>(sign | 0x7E00U | ((magnitude >> 13) & 0x3FFU));
  }
  if (magnitude >= 0x477FF000U) return static_cast<uint16_t>(sign | 0x7C00U);  // 65520 and above
  if (magnitude >= 0x38800000U) {                                              // 2^-14: normal
    const uint32_t odd = (magnitude >> 13) & 1U;
    const uint32_t rounded = magnitude - 0x38000000U + 0xFFFU + odd;
    return static_cast<uint16_t>(sign | (rounded >> 13));
  }
  if (magnitude < 0x33000000U) return static_cast<uint16_t>(sign);  // below 2^-25
  // Subnormal: shift the 24-bit significand to units of 2^-24.
  const uint32_t shift = 126U - (magnitude >> 23);
  const uint32_t significand = (magnitude & 0x7FFFFFU) | 0x800000U;
  const uint32_t whole = significand >> shift;
  const uint32_t rest = significand & ((1U << shift) - 1U);
  const uint32_t half = 1U << (shift - 1U);
  const bool up = rest > half || (rest == half && (whole & 1U) != 0);
  return static_cast<uint16_t>(sign | (whole + (up ? 1U : 0U)));
}

// The upper half of an f32 (1-8-7). Exact.
constexpr float bf16_to_f32(uint16_t h) {
  return std::bit_cast<float>(static_cast<uint32_t>(h) << 16);
}

// Rounds to nearest, ties to even; NaN stays NaN and becomes quiet.
constexpr uint16_t f32_to_bf16(float f) {
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

// Half of an E8M0 scale, 2^(e - 128): pairs with the doubled FP4 codes. Exact, subnormal for
// e < 2. The byte 255 has no meaning in the format; here it is 2^127 like its neighbours.
constexpr float e8m0_half_to_f32(uint8_t e) {
  const uint32_t bits = e < 2 ? 0x200000U << e : (static_cast<uint32_t>(e) - 1U) << 23;
  return std::bit_cast<float>(bits);
}

// An unsigned E4M3 scale (bias 7); 0x7F is 0 and the top bit is ignored.
constexpr float ue4m3_to_f32(uint8_t x) {
  const uint32_t exponent = (x >> 3) & 15U;
  const uint32_t mantissa = x & 7U;
  if ((x & 0x7FU) == 0x7FU) return 0.0F;
  if (exponent == 0) return static_cast<float>(mantissa) * 0x1p-9F;
  return std::bit_cast<float>(((exponent + 120U) << 23) | (mantissa << 20));
}

}  // namespace strata::quant
