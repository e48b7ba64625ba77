#pragma once

#include <string>
#include <vector>

#include "strata/memory/expert_homes.h"
#include "strata/memory/machine.h"
#include "strata/memory/placement.h"

namespace strata::memory {

// Where the experts of all layers have their homes.
struct ExpertHomes {
  std::vector<StageSlots> stages;  // on cards
  // Of each layer of trunk and draft: how many of its experts, hottest first, cards and RAM hold
  // together. The others stay in storage.
  std::vector<int> in_memory;

  // Slots of a layer on cards.
  int slots(int layer) const;
};

// What the rates say; no promise. 0: a rate that is needed is not known.
struct Expectation {
  double hit_rate = 0;      // expert reads that find a slot on a card
  double storage_rate = 0;  // expert reads that go to storage
  double prompt_tokens_per_s = 0, decode_tokens_per_s = 0;
  std::string basis;  // where the hit rate is from
};

// One answer at a time, a short context, no drafting. Bytes over rates: a card and the host reach
// kReached of their memory's rate; what the card misses is computed by the host and fetched over
// the link at the same time; reads from storage are waited for.
Expectation expect(const PlanSource& model, const Machine& machine, const Placement& placement,
                   const ExpertHomes& homes, const ExpertProfile* profile);

}  // namespace strata::memory
