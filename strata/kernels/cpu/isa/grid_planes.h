#pragma once

#include <cstdint>

// Codebooks for look-ups by byte permutes (AVX-512 VBMI): a table of bytes for a part of each
// entry, looked up for 64 indices at once.
namespace strata::kernels::cpu {

// Plane i has positions 2i and 2i + 1 of each entry of four: one of eight values a nibble, which
// also leaves bit 3 of each nibble 0.
template <int entries>
struct NibblePlanes {
  alignas(64) uint8_t plane[2][entries];
  uint8_t value[16];  // with the offset that kernels add to codes
};

// Plane i has positions 4i to 4i + 3 of each entry of eight: one of three values every two bits.
template <int entries>
struct PairPlanes {
  alignas(64) uint8_t plane[2][entries];
};

struct GridPlanes {
  NibblePlanes<256> iq3xxs;  // values + 64
  NibblePlanes<512> iq3s;    // values + 16
  PairPlanes<256> iq2xxs;
  PairPlanes<512> iq2xs;
  PairPlanes<1024> iq2s;
  // Values of IQ2 + 64 by six bits of a byte: those of the lowest, the middle and the highest two.
  alignas(64) uint8_t iq2_value[3][64];
  // The sign byte of seven bits.
  alignas(64) uint8_t signs[128];
};

}  // namespace strata::kernels::cpu
