// F32, F16, BF16.
#include <algorithm>
#include <bit>
#include <cmath>

#include "strata/quant/bits.h"
#include "strata/quant/families.h"

namespace strata::quant {

void decode_f32(const std::byte* in, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = std::bit_cast<float>(load_u32(in + 4 * i));
}

void decode_f16(const std::byte* in, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = load_f16(in + 2 * i);
}

void decode_bf16(const std::byte* in, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = bf16_to_f32(load_u16(in + 2 * i));
}

void encode_f32(const float* x, std::byte* out) {
  const auto bits = std::bit_cast<uint32_t>(*x);
  store_u16(out, bits);
  store_u16(out + 2, bits >> 16);
}

void encode_f16(const float* x, std::byte* out) { store_f16(out, saturate_f16(*x)); }

void encode_bf16(const float* x, std::byte* out) {
  constexpr float kMax = std::bit_cast<float>(0x7F7F0000U);
  store_u16(out, f32_to_bf16(std::clamp(*x, -kMax, kMax)));
}

}  // namespace strata::quant
