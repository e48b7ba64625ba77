#pragma once

#include <cstdint>

namespace strata {

// 64 random bits for each (key, counter): the finaliser of SplitMix64 on a Weyl sequence. Without a
// state, so that any part of a stream can be made alone, by any thread.
constexpr uint64_t random_bits(uint64_t key, uint64_t counter) {
  uint64_t x = key + counter * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace strata
