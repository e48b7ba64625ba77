#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>

#include "strata/base/ids.h"

namespace strata::memory {

// An expert in memory: its three matrices gate | up | down, one after the other. The same bytes in
// RAM and in a card's slot, so a move is a copy.
struct BlobShape {
  // Kernels load matrices in whole lines of the cache.
  static constexpr Bytes kAlign = 64;
  std::array<Bytes, 3> part{};  // bytes of each

  static constexpr Bytes aligned(Bytes n) { return (n + kAlign - 1) / kAlign * kAlign; }
  Bytes offset(int i) const {
    Bytes at = 0;
    for (int k = 0; k < i; ++k) at += aligned(part[static_cast<size_t>(k)]);
    return at;
  }
  Bytes bytes() const { return offset(3); }
};

// Where a layer's experts lie in files.
struct BlobFiles {
  struct Part {
    int file = -1;                    // of the store's files
    uint64_t offset = 0, stride = 0;  // expert e begins at offset + e * stride
  };
  std::array<Part, 3> part;
  // Turns part i as the file has it into what kernels take; empty: it is that. Any thread.
  std::function<void(int i, const std::byte* raw, std::byte* to)> relay;
};

}  // namespace strata::memory
