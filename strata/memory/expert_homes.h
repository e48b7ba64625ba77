#pragma once

#include <span>
#include <string>
#include <vector>

#include "strata/base/ids.h"
#include "strata/memory/expert_profile.h"
#include "strata/memory/placement.h"

namespace strata::memory {

// Room for experts of one size on a card. An expert goes into any slot that is large enough.
struct SlotClass {
  Bytes bytes = 0;
  int n = 0;
};

// Slots of a stage: so many for each of its layers to begin with; at run time any layer may use
// any slot that fits.
struct StageSlots {
  DeviceId where;
  std::vector<int> layers;  // numbers; the draft layer last, on the card where it is computed
  std::vector<int> slots;   // of each
  std::vector<SlotClass> classes;
  Bytes bytes = 0;
  int n() const;
  bool everything(const PlanSource& model) const;  // every expert of its layers has a slot
};

// How slots are divided among layers: equally, which the most reads hit, or as many as there are
// experts to one layer after the other, which spares whole layers the way to the host.
enum class Divide : uint8_t { kEqually, kLayerByLayer };

// Divides `left` bytes among the layers; what then remains goes one by one to the first that fit.
// At most `most` a layer. Leaves less than one blob unless all have `most`.
StageSlots divide_slots(const PlanSource& model, DeviceId where, std::vector<int> layers,
                        Bytes left, int most, Divide how = Divide::kEqually);

// The share of a layer's expert reads that its `n` hottest experts take. With a profile: its
// counts. Without one: published values of this family, 0.67, 0.81 and 1 with 64, 128 and 512 of
// 512 experts, straight lines between.
double hit_rate(const ExpertProfile* profile, int layer, int n, int n_experts);

}  // namespace strata::memory
