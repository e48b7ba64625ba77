#include "strata/kernels/cpu/matmul_planes.h"

#include <algorithm>
#include <array>

#include "strata/base/check.h"
#include "strata/quant/codebooks.h"

namespace strata::kernels::cpu {
namespace {

// The place of each value of a codebook among its distinct values, ascending.
template <size_t n>
struct Values {
  std::array<int, n> value{};
  explicit Values(const auto& grid) {
    size_t found = 0;
    for (const auto& entry : grid) {
      for (const int v : entry) {
        if (std::find(value.begin(), value.begin() + found, v) != value.begin() + found) continue;
        STRATA_CHECK(found < n);
        value[found++] = v;
      }
    }
    std::sort(value.begin(), value.begin() + found);
  }
  uint8_t code(int v) const {
    return static_cast<uint8_t>(std::find(value.begin(), value.end(), v) - value.begin());
  }
};

template <int entries>
void fill_nibbles(const quant::Codebook<entries, 4>& grid, int offset, NibblePlanes<entries>& out) {
  const Values<8> values(grid);
  for (size_t e = 0; e < entries; ++e) {
    for (size_t i = 0; i < 4; i += 2) {
      out.plane[i / 2][e] =
          static_cast<uint8_t>(values.code(grid[e][i]) | values.code(grid[e][i + 1]) << 4);
    }
  }
  for (size_t i = 0; i < 16; ++i) out.value[i] = static_cast<uint8_t>(values.value[i % 8] + offset);
}

template <int entries>
void fill_pairs(const quant::Codebook<entries, 8>& grid, const Values<3>& values,
                PairPlanes<entries>& out) {
  for (size_t e = 0; e < entries; ++e) {
    for (size_t i = 0; i < 2; ++i) {
      int byte = 0;
      for (size_t k = 0; k < 4; ++k) byte |= values.code(grid[e][4 * i + k]) << (2 * k);
      out.plane[i][e] = static_cast<uint8_t>(byte);
    }
  }
}

}  // namespace

GridPlanes make_grid_planes() {
  constexpr int kOffset3 = 64, kOffset3s = 16, kOffset2 = 64;
  GridPlanes planes{};
  fill_nibbles<256>(quant::kIq3xxsGrid, kOffset3, planes.iq3xxs);
  fill_nibbles<512>(quant::kIq3sGrid, kOffset3s, planes.iq3s);
  const Values<3> values(quant::kIq2sGrid);
  fill_pairs<256>(quant::kIq2xxsGrid, values, planes.iq2xxs);
  fill_pairs<512>(quant::kIq2xsGrid, values, planes.iq2xs);
  fill_pairs<1024>(quant::kIq2sGrid, values, planes.iq2s);
  for (size_t i = 0; i < 64; ++i) {
    for (size_t k = 0; k < 3; ++k) {
      const size_t code = i >> (2 * k) & 3;
      planes.iq2_value[k][i] = static_cast<uint8_t>(code < 3 ? values.value[code] + kOffset2 : 0);
    }
  }
  for (uint32_t i = 0; i < 128; ++i) planes.signs[i] = quant::sign_byte(i);
  return planes;
}

}  // namespace strata::kernels::cpu
