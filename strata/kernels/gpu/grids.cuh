#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "strata/kernels/gpu/blocks.cuh"
#include "strata/quant/codebook_figures.h"
#include "strata/quant/codebooks.h"

// The fixed tables of the IQ and FP4 types in a card's memory; quant/codebooks.cpp has the same for
// the host.
namespace strata::kernels::gpu {

// Entries of 8 values as two words, or of 4 as one.
template <size_t kEntries>
struct Octets {
  uint2 v[kEntries];
};
template <size_t kEntries>
struct Quads {
  uint32_t v[kEntries];
};

// Values i, i + 1, ... of an entry as bytes of a word, `bits` bits an index into the kinds. times:
// IQ1 wants eight times its values.
template <size_t kKinds>
constexpr uint32_t bytes_of_entry(uint32_t entry, int first, int bits,
                                  const std::array<int8_t, kKinds>& kinds, int times) {
  uint32_t word = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t kind = (entry >> (bits * (first + i))) & ((1U << bits) - 1U);
    word |= (static_cast<uint32_t>(kinds[kind] * times) & 255U) << (8 * i);
  }
  return word;
}
template <size_t kEntries, size_t kKinds>
constexpr Octets<kEntries> octets_of(const std::array<uint16_t, kEntries>& packed,
                                     const std::array<int8_t, kKinds>& kinds, int times = 1) {
  Octets<kEntries> out{};
  for (size_t e = 0; e < kEntries; ++e) {
    out.v[e].x = bytes_of_entry(packed[e], 0, 2, kinds, times);
    out.v[e].y = bytes_of_entry(packed[e], 4, 2, kinds, times);
  }
  return out;
}
template <size_t kEntries, size_t kKinds>
constexpr Quads<kEntries> quads_of(const std::array<uint16_t, kEntries>& packed,
                                   const std::array<int8_t, kKinds>& kinds) {
  Quads<kEntries> out{};
  for (size_t e = 0; e < kEntries; ++e) out.v[e] = bytes_of_entry(packed[e], 0, 3, kinds, 1);
  return out;
}

namespace figures = quant::figures;
static __device__ const Octets<256> kIq2xxsOctets =
    octets_of(figures::kIq2xxs, figures::kIq2xxsKinds);
static __device__ const Octets<512> kIq2xsOctets = octets_of(figures::kIq2xs, figures::kIq2xsKinds);
static __device__ const Octets<1024> kIq2sOctets = octets_of(figures::kIq2s, figures::kIq2sKinds);
static __device__ const Octets<2048> kIq1sOctets =
    octets_of(figures::kIq1s, figures::kIq1sKinds, 8);
static __device__ const Quads<256> kIq3xxsQuads = quads_of(figures::kIq3xxs, figures::kIq3xxsKinds);
static __device__ const Quads<512> kIq3sQuads = quads_of(figures::kIq3s, figures::kIq3sKinds);

template <size_t kEntries>
STRATA_FN uint2 octet(const Octets<kEntries>& grid, uint32_t index) {
  return __ldg(&grid.v[index]);
}

constexpr Table16 table_of(const std::array<int8_t, 16>& values) {
  Table16 table{};
  for (size_t i = 0; i < 16; ++i) {
    table.at[i / 4] |= static_cast<uint32_t>(static_cast<uint8_t>(values[i])) << (8 * (i % 4));
  }
  return table;
}
constexpr Table16 kNonLinearTable = table_of(quant::kNonLinear);
constexpr Table16 kFp4Table = table_of(quant::kFp4Doubled);

}  // namespace strata::kernels::gpu
