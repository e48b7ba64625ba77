#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "strata/quant/types.h"

namespace strata::cli {

struct BlockForm;

// Random weights of a tensor type: blocks whose codes are random bits, under scales that give the
// values a mean near 0 and the wanted standard deviation. A function of the key and the place
// alone. All types that can be weights; for the others the constructor throws.
class RandomBlocks {
 public:
  // Pieces begin at multiples of this many blocks.
  static constexpr uint64_t kGranule = 8;

  // Errors: kInvalidArgument for a type that is no weight.
  RandomBlocks(quant::Type type, double deviation, uint64_t key);

  // Whole blocks from `first` on. Errors: none; first is a multiple of kGranule.
  void fill(uint64_t first, std::span<std::byte> out) const;

 private:
  void set_scales(double unit);
  void fix(std::byte* block) const;

  const quant::TypeTraits& traits_;
  const BlockForm* form_;
  uint64_t key_;
  // Chosen by a random byte: the scale as the type stores it, and the other f16 of the block.
  std::array<uint16_t, 256> scale_{}, offset_{};
  float step_ = 0;  // of float types: the value of one unit of the random integer
};

}  // namespace strata::cli
