#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strata/memory/budget.h"
#include "strata/memory/expectation.h"
#include "strata/memory/expert_profile.h"
#include "strata/memory/machine.h"
#include "strata/memory/placement.h"
#include "strata/memory/plan.h"

namespace strata::memory {

// How many experts RAM holds.
enum class ExpertsInRam : uint8_t {
  kAuto,      // the first of these that fits
  kAll,       // all of them: a card's slots are copies
  kResident,  // what no card holds
  kBudget,    // the hottest, as many as fit into so many bytes; the others stay in storage
};

// What a person asks for. What is not set is chosen, and may step down until all fits; what is set
// is kept, or the plan is refused.
struct PlanWishes {
  CardWishes cards;
  std::optional<Bytes> ram_reserve;
  std::optional<std::vector<int>> layer_split;  // layers of each card, all of them together
  std::optional<int> expert_slots;              // at most so many a layer on a card
  ExpertsInRam experts = ExpertsInRam::kAuto;
  std::optional<Bytes> expert_ram;  // with kBudget; else what is left
  std::optional<int> chunk;
  std::optional<int64_t> max_context;
  std::optional<bool> draft;
  // Where the search for what is not set begins.
  int usual_chunk = 512;
  int64_t usual_context = 16384;
  const ExpertProfile* profile = nullptr;  // outlives the call
};

// One card, or host memory (device 0).
struct DeviceUse {
  DeviceId where;
  std::string name;
  Budget budget;
  Bytes peak = 0;  // the largest phase
  int expert_slots = 0;
  Bytes missing() const { return peak > budget.bytes ? peak - budget.bytes : 0; }
};

struct StorageUse {
  int64_t n_blobs = 0;  // experts that lie nowhere else
  Bytes bytes = 0;
};

// A plan that fits, or the one that came closest.
struct Solution {
  bool fits = false;
  Placement placement;
  Plan plan;
  ExpertHomes homes;
  std::vector<DeviceUse> devices;  // host memory first, then every card of the machine
  StorageUse storage;
  ExpertsInRam experts = ExpertsInRam::kAll;  // never kAuto
  Bytes expert_ram = 0;                       // of the experts that RAM holds
  Expectation expected;
  std::vector<Decision> decisions;
  // For people, if it does not fit: need and have of each place, and what would make it fit.
  std::string refusal;
};

// The pure planner: sizes, a machine and wishes in, every byte's place out. The same input gives
// the same plan. Expert slots are what is left of a card's budget when everything else has its
// line, so a reserve that is d larger lowers the card's peak by d to within one expert, unless all
// experts of its layers had slots.
// Errors: kInvalidArgument for wishes that contradict the machine or the model.
Solution solve(const PlanSource& model, const Machine& machine, const PlanWishes& wishes);

}  // namespace strata::memory
