#include "strata/quant/codebooks.h"

#include <cstddef>

#include "strata/quant/codebook_figures.h"

namespace strata::quant {
namespace {

// The figures pack an entry into 16 bits; kernels want it as bytes.
template <int values, size_t entries, size_t kinds>
constexpr Codebook<static_cast<int>(entries), values> expand(
    const std::array<uint16_t, entries>& packed, const std::array<int8_t, kinds>& kind) {
  constexpr int kBits = values == 8 ? 2 : 3;
  Codebook<static_cast<int>(entries), values> out{};
  for (size_t e = 0; e < entries; ++e) {
    for (int i = 0; i < values; ++i) {
      out[e][i] = kind[(packed[e] >> (kBits * i)) & ((1U << kBits) - 1U)];
    }
  }
  return out;
}

}  // namespace

alignas(64) constexpr Codebook<256, 8> kIq2xxsGrid = expand<8>(figures::kIq2xxs,
                                                               figures::kIq2xxsKinds);
alignas(64) constexpr Codebook<512, 8> kIq2xsGrid = expand<8>(figures::kIq2xs,
                                                              figures::kIq2xsKinds);
alignas(64) constexpr Codebook<1024, 8> kIq2sGrid = expand<8>(figures::kIq2s, figures::kIq2sKinds);
alignas(64) constexpr Codebook<256, 4> kIq3xxsGrid = expand<4>(figures::kIq3xxs,
                                                               figures::kIq3xxsKinds);
alignas(64) constexpr Codebook<512, 4> kIq3sGrid = expand<4>(figures::kIq3s, figures::kIq3sKinds);
alignas(64) constexpr Codebook<2048, 8> kIq1sGrid = expand<8>(figures::kIq1s, figures::kIq1sKinds);

}  // namespace strata::quant
