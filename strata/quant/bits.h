#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "strata/quant/half.h"

// Reading and writing the fields of a block. Files are little-endian and blocks lie at odd
// addresses, so fields are put together from bytes.
namespace strata::quant {

inline uint8_t load_u8(const std::byte* p) { return static_cast<uint8_t>(*p); }
inline int8_t load_i8(const std::byte* p) { return static_cast<int8_t>(*p); }
inline uint16_t load_u16(const std::byte* p) {
  return static_cast<uint16_t>(load_u8(p) | load_u8(p + 1) << 8);
}
inline uint32_t load_u32(const std::byte* p) {
  return load_u16(p) | static_cast<uint32_t>(load_u16(p + 2)) << 16;
}
inline float load_f16(const std::byte* p) { return f16_to_f32(load_u16(p)); }

// Four bits, two bits, one bit: the k-th from below.
constexpr uint32_t nibble(uint32_t x, int k) { return (x >> (4 * k)) & 15U; }
constexpr uint32_t pair(uint32_t x, int k) { return (x >> (2 * k)) & 3U; }
constexpr uint32_t bit(uint32_t x, int k) { return (x >> k) & 1U; }

// Value j of 32 whose nibbles lie split: the low ones are values 0..15, the high ones 16..31.
inline uint32_t split_nibble(const std::byte* qs, int j) {
  return nibble(load_u8(qs + j % 16), j / 16);
}

inline void store_u8(std::byte* p, uint32_t value) { *p = static_cast<std::byte>(value); }
inline void store_u16(std::byte* p, uint32_t value) {
  store_u8(p, value);
  store_u8(p + 1, value >> 8);
}
inline void store_f16(std::byte* p, float value) { store_u16(p, f32_to_f16(value)); }

// Encoders keep finite values finite: what does not fit an f16 becomes the largest that does.
inline float saturate_f16(float x) { return std::clamp(x, -65504.0F, 65504.0F); }

}  // namespace strata::quant
