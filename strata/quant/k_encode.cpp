// Q4_K and Q6_K from floats, round to nearest: the scales from each group's range, then the codes
// against the scales as stored. Layouts: k_quants.cpp.
#include <algorithm>
#include <array>
#include <cmath>

#include "strata/quant/bits.h"
#include "strata/quant/encode_steps.h"
#include "strata/quant/families.h"

namespace strata::quant {
namespace {

// Eight scales and mins of six bits in 12 bytes: the first four of each lie plain; the others have
// their low four bits in the last four bytes and their high two above the first eight.
void pack_scales_and_mins(const std::array<int, 8>& scale, const std::array<int, 8>& min,
                          std::byte* s) {
  for (int g = 0; g < 4; ++g) {
    store_u8(s + g, static_cast<uint32_t>(scale[g] | (scale[g + 4] >> 4) << 6));
    store_u8(s + g + 4, static_cast<uint32_t>(min[g] | (min[g + 4] >> 4) << 6));
    store_u8(s + g + 8, static_cast<uint32_t>((scale[g + 4] & 15) | (min[g + 4] & 15) << 4));
  }
}

}  // namespace

void encode_q4_k(const float* x, std::byte* block) {
  std::array<double, 8> low{};  // of each group, 0 or below: a min only shifts down
  std::array<double, 8> high{};
  double widest = 0;
  for (int g = 0; g < 8; ++g) {
    const auto [least, most] = std::minmax_element(x + 32 * g, x + 32 * g + 32);
    low[g] = std::min(0.0, double{*least});
    high[g] = *most;
    widest = std::max(widest, high[g] - low[g]);
  }
  const double d = store_scale(block, widest / 15 / 63);
  const double dmin = store_scale(block + 2, -*std::ranges::min_element(low) / 63);
  std::array<int, 8> scale{};
  std::array<int, 8> min{};
  for (int g = 0; g < 8; ++g) {
    min[g] = nearest_code(-low[g], dmin, 0, 63);
    scale[g] = nearest_code((high[g] + dmin * min[g]) / 15, d, 0, 63);
  }
  pack_scales_and_mins(scale, min, block + 4);
  for (int g = 0; g < 8; g += 2) {
    for (int j = 0; j < 32; ++j) {
      const double even = x[32 * g + j] + dmin * min[g];
      const double odd = x[32 * g + 32 + j] + dmin * min[g + 1];
      const int code =
          nearest_code(even, d * scale[g], 0, 15) | nearest_code(odd, d * scale[g + 1], 0, 15) << 4;
      store_u8(block + 16 + 16 * g + j, static_cast<uint32_t>(code));
    }
  }
}

void encode_q6_k(const float* x, std::byte* block) {
  std::array<double, 16> wanted{};  // the farthest value of a group takes code -32
  double largest = 0;
  for (int g = 0; g < 16; ++g) {
    wanted[g] = farthest({x + 16 * g, 16}) / -32;
    if (std::abs(wanted[g]) > std::abs(largest)) largest = wanted[g];
  }
  const double d = store_scale(block + 208, largest / -128);
  std::array<int, 256> code{};
  for (int g = 0; g < 16; ++g) {
    const int scale = nearest_code(wanted[g], d, -128, 127);
    store_u8(block + 192 + g, static_cast<uint32_t>(scale));
    for (int j = 16 * g; j < 16 * g + 16; ++j) {
      code[j] = nearest_code(x[j], d * scale, -32, 31) + 32;
    }
  }
  for (int half = 0; half < 2; ++half) {
    for (int l = 0; l < 32; ++l) {
      const int* quarter = &code[128 * half + l];  // the four quarters are 32 apart
      const int q[4] = {quarter[0], quarter[32], quarter[64], quarter[96]};
      store_u8(block + 64 * half + l, static_cast<uint32_t>((q[0] & 15) | (q[2] & 15) << 4));
      store_u8(block + 64 * half + 32 + l, static_cast<uint32_t>((q[1] & 15) | (q[3] & 15) << 4));
      const int high = q[0] >> 4 | q[1] >> 4 << 2 | q[2] >> 4 << 4 | q[3] >> 4 << 6;
      store_u8(block + 128 + 32 * half + l, static_cast<uint32_t>(high));
    }
  }
}

}  // namespace strata::quant
