#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "strata/memory/expert_heat.h"
#include "strata/memory/expert_homes.h"

namespace strata::memory {

// Which expert is in which slot of one stretch of memory. Slots have sizes; an expert goes into any
// that is large enough. Bookkeeping alone: bytes move elsewhere.
class SlotTable {
 public:
  // Every slot begins at a multiple of this.
  static constexpr Bytes kAlign = 256;
  static constexpr Bytes stride(Bytes bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

  struct Slot {
    Bytes offset = 0, bytes = 0;  // in the memory
    std::optional<ExpertPlace> holds;
    int pins = 0;        // in use: stays
    uint64_t stamp = 0;  // of the last call that named it
  };

  SlotTable(std::span<const SlotClass> classes, int n_layers, int n_experts);

  Bytes bytes() const { return bytes_; }  // of the memory
  int n() const { return static_cast<int>(slots_.size()); }
  const Slot& at(int slot) const { return slots_[static_cast<size_t>(slot)]; }
  Slot& at(int slot) { return slots_[static_cast<size_t>(slot)]; }

  // -1: in none.
  int find(int layer, int expert) const { return where_[index(layer, expert)]; }
  int find(ExpertPlace place) const { return find(place.layer, place.expert); }

  void put(int slot, ExpertPlace place);  // of an empty one
  void clear(int slot);

  // A slot of at least so many bytes to be given up for another expert: an empty one, the smallest
  // that fits; else about the coldest that is neither pinned nor has this stamp. -1: none.
  int victim(Bytes bytes, const ExpertHeat& heat, uint64_t stamp);

 private:
  size_t index(int layer, int expert) const {
    return static_cast<size_t>(layer) * static_cast<size_t>(n_experts_) +
           static_cast<size_t>(expert);
  }
  void list_coldest(const ExpertHeat& heat);

  int n_experts_;
  Bytes bytes_ = 0;
  std::vector<Slot> slots_;     // by size
  std::vector<int32_t> where_;  // [layers, experts]
  int n_empty_ = 0;
  // The coldest when they were listed, to be taken from the front. An expert that was used since is
  // passed over: its heat is no longer the listed one.
  struct Cold {
    int slot = -1;
    ExpertPlace holds;
    double heat = 0;
  };
  std::vector<Cold> coldest_;
  uint64_t epoch_ = 0;
};

}  // namespace strata::memory
