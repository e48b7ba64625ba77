#pragma once

#include <array>
#include <cstdint>

// The fixed tables of the IQ and FP4 types. Entries are in value order, one int8 a value, and
// 64-byte aligned, so that kernels can gather an entry of 8 (or 4) as one integer.
// Source: the figures of ggml (MIT), kept as tests/golden/quant/*.i8; see codebook_figures.h.
namespace strata::quant {

template <int entries, int values>
using Codebook = std::array<std::array<int8_t, values>, entries>;

alignas(64) extern const Codebook<256, 8> kIq2xxsGrid;  // of 8, 25, 43
alignas(64) extern const Codebook<512, 8> kIq2xsGrid;   // the same
alignas(64) extern const Codebook<1024, 8> kIq2sGrid;   // the same
alignas(64) extern const Codebook<256, 4> kIq3xxsGrid;  // of 4, 12, ... 52, 62
alignas(64) extern const Codebook<512, 4> kIq3sGrid;    // of 1, 3, ... 15
alignas(64) extern const Codebook<2048, 8> kIq1sGrid;   // of -1, 0, 1; IQ1_S and IQ1_M

// IQ4_NL and IQ4_XS.
inline constexpr std::array<int8_t, 16> kNonLinear = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                      1,    13,   25,  38,  53,  69,  89,  113};

// Twice the FP4 (E2M1) values, integers; there is one zero.
inline constexpr std::array<int8_t, 16> kFp4Doubled = {0, 1,  2,  3,  4,  6,  8,  12,
                                                       0, -1, -2, -3, -4, -6, -8, -12};

// The sign byte of IQ2_XXS, IQ2_XS and IQ3_XXS: seven bits are stored, the eighth makes the number
// of ones even. Bit i set means that value i of eight is negated.
constexpr uint8_t sign_byte(uint32_t seven_bits) {
  uint32_t x = seven_bits & 127U;
  uint32_t parity = x ^ (x >> 4);
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return static_cast<uint8_t>(x | ((parity & 1U) << 7));
}

}  // namespace strata::quant
