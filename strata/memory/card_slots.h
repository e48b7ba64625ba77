#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "strata/device/device.h"
#include "strata/device/stream.h"
#include "strata/memory/expert_blob.h"
#include "strata/memory/expert_heat.h"
#include "strata/memory/expert_store.h"
#include "strata/memory/plan.h"
#include "strata/memory/slot_table.h"

namespace strata::memory {

struct SlotCounters {
  uint64_t filled = 0, swapped = 0;  // experts brought to the card
  uint64_t hits = 0, misses = 0;     // reads of experts, a row's choice counted once
};

// A card's slots for experts of layers of which it does not hold all. Which expert is where changes
// only between steps: swap() queues the moves and the new addresses in the order of the stream that
// computes, so what was queued before finds what it was queued for. One engine thread.
class CardSlots {
 public:
  struct Options {
    bool slots_planned =
        false;            // somebody else has the line of the slots; allocate() is not called
    int max_swaps = 4;    // experts between two steps
    double margin = 1.2;  // a newcomer must be so much hotter than what it takes the place of
  };
  // slots: of this card; layers that are not named there have none. layers: those that the table
  // of addresses has. shapes: by layer. The device outlives this.
  CardSlots(device::Device& device, const StageSlots& slots, std::vector<int> layers,
            std::vector<BlobShape> shapes, int n_experts, const Options& options, Plan& plan);

  // Errors: kResourceExhausted.
  void allocate();
  // Before the first step: the hottest experts of each layer, as many as the slots were made for.
  // Waits for the stream. Errors: those of ExpertStore::acquire and Stream::copy; kDevice.
  void fill(ExpertStore& store, const ExpertHeat& heat, device::Stream& stream);

  // [experts, 3] in the card's memory.
  View<const std::byte* const> parts(LayerId layer) const;
  // As of the work that is queued from now on.
  bool holds(LayerId layer, ExpertId expert) const {
    return table_.find(layer.value, expert.value) >= 0;
  }
  // Tells that a step's rows read these experts from here, and those from elsewhere.
  void count(LayerId layer, int64_t hits, std::span<const ExpertId> missed, int64_t misses);
  // Brings what was missed and is hot, in the place of what is cold. Between steps only, when what
  // swap queued last is done. Returns how many. Errors: as fill.
  int swap(ExpertStore& store, const ExpertHeat& heat, device::Stream& stream);

  const SlotCounters& counters() const { return counters_; }
  int n_slots() const { return table_.n(); }

 private:
  using Parts = ExpertStore::Parts;
  int ring() const { return std::max(1, options_.max_swaps); }  // experts on their way at once
  int row_of(int layer) const { return rows_[static_cast<size_t>(layer)]; }
  const BlobShape& shape(int layer) const { return shapes_[static_cast<size_t>(layer)]; }
  void bring(ExpertPlace place, int slot, int ring, ExpertStore& store, device::Stream& stream);
  void announce(std::span<const ExpertPlace> places, ExpertStore& store) const;
  void set_address(ExpertPlace place, const std::byte* blob, device::Stream& stream);
  Bytes table_bytes() const {
    return layers_.size() * static_cast<Bytes>(n_experts_) * sizeof(Parts);
  }
  void confirm(device::Stream& stream);
  void take_back(device::Stream& stream);

  device::Device& device_;
  std::vector<int> layers_, first_;  // of the table; slots of each to begin with
  std::vector<int> rows_;            // of a layer in the table, -1: not there
  std::vector<BlobShape> shapes_;
  int n_experts_;
  Options options_;
  SlotTable table_;
  Bytes largest_ = 0;
  PlanLineId slot_line_, address_line_, host_address_line_, ring_line_;
  device::Allocation slots_, addresses_, host_addresses_, ring_;
  std::vector<ExpertPlace> missed_;  // since the last swap
  // Behind the tables lies a word that follows the last swap to the card and back: when it has not
  // come, work was skipped because other work had failed, and nobody knows what did arrive.
  std::vector<ExpertPlace> unconfirmed_;
  uint64_t stamp_ = 1;  // of a swap
  SlotCounters counters_;
};

}  // namespace strata::memory
