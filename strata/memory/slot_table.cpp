#include "strata/memory/slot_table.h"

#include <algorithm>

#include "strata/base/check.h"

namespace strata::memory {
namespace {

// Listing costs a look at every slot; with so many at once it is nothing beside the moves.
constexpr size_t kListed = 256;

}  // namespace

SlotTable::SlotTable(std::span<const SlotClass> classes, int n_layers, int n_experts)
    : n_experts_(n_experts),
      where_(static_cast<size_t>(n_layers) * static_cast<size_t>(n_experts), -1) {
  std::vector<SlotClass> sorted(classes.begin(), classes.end());
  std::ranges::sort(sorted, {}, &SlotClass::bytes);
  for (const SlotClass& c : sorted) {
    for (int i = 0; i < c.n; ++i) {
      slots_.push_back({.offset = bytes_, .bytes = c.bytes});
      bytes_ += stride(c.bytes);
    }
  }
  n_empty_ = n();
}

void SlotTable::put(int slot, ExpertPlace place) {
  Slot& s = at(slot);
  STRATA_CHECK(!s.holds && find(place) < 0);
  s.holds = place;
  where_[index(place.layer, place.expert)] = slot;
  --n_empty_;
}

void SlotTable::clear(int slot) {
  Slot& s = at(slot);
  STRATA_CHECK(s.pins == 0);
  if (!s.holds) return;
  where_[index(s.holds->layer, s.holds->expert)] = -1;
  s.holds.reset();
  ++n_empty_;
}

void SlotTable::list_coldest(const ExpertHeat& heat) {
  coldest_.clear();
  for (int i = 0; i < n(); ++i) {
    const Slot& s = at(i);
    if (s.holds && s.pins == 0) coldest_.push_back({i, *s.holds, heat.of(*s.holds)});
  }
  const auto kept = static_cast<std::ptrdiff_t>(std::min(kListed, coldest_.size()));
  std::partial_sort(coldest_.begin(), coldest_.begin() + kept, coldest_.end(),
                    [](const Cold& a, const Cold& b) { return a.heat < b.heat; });
  coldest_.resize(static_cast<size_t>(kept));
  epoch_ = heat.epoch();
}

int SlotTable::victim(Bytes bytes, const ExpertHeat& heat, uint64_t stamp) {
  if (n_empty_ > 0) {
    for (int i = 0; i < n(); ++i) {
      if (at(i).bytes >= bytes && !at(i).holds && at(i).pins == 0) return i;
    }
  }
  const auto take = [&]() {
    for (auto it = coldest_.begin(); it != coldest_.end(); ++it) {
      const Slot& s = at(it->slot);
      if (s.bytes < bytes) continue;
      const bool free = s.pins == 0 && s.stamp != stamp;
      const bool cold = s.holds == it->holds && heat.of(it->holds) == it->heat;
      if (!free || !cold) continue;
      const int slot = it->slot;
      coldest_.erase(it);
      return slot;
    }
    return -1;
  };
  const int listed = epoch_ == heat.epoch() ? take() : -1;
  if (listed >= 0) return listed;
  list_coldest(heat);
  const int slot = take();
  if (slot >= 0) return slot;
  // All of the listed are in use: any other will do.
  for (int i = 0; i < n(); ++i) {
    const Slot& s = at(i);
    if (s.bytes >= bytes && s.pins == 0 && s.stamp != stamp) return i;
  }
  return -1;
}

}  // namespace strata::memory
