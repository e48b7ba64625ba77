#include "strata/engine/memory_report.h"

#include <algorithm>
#include <utility>

namespace strata::engine {

wire::MemoryPlan memory_plan(model::Instance& instance) {
  wire::MemoryPlan plan{.storage = instance.in_storage()};
  for (const memory::DeviceUse& use : instance.memory_uses()) {
    wire::PlanDevice device{.name = use.name,
                            .budget = use.budget.bytes,
                            .reserve = use.budget.reserve,
                            .peak = use.peak,
                            .used = instance.ledger().peak(use.where),
                            .n_expert_slots = use.expert_slots};
    for (const memory::Line& line : instance.plan().lines()) {
      if (line.where != use.where) continue;
      device.lines.push_back({line.owner, line.name, line.formula, line.bytes,
                              memory::phases_text(line.phases), line.mapped});
    }
    plan.devices.push_back(std::move(device));
  }
  return plan;
}

wire::ExpertReads expert_reads(const model::Model& model) {
  const memory::SlotCounters slots = model.slot_counters();
  const memory::PoolCounters pool = model.pool_counters();
  const uint64_t misses = std::min(pool.misses, pool.uses);  // one may have been read for nobody
  return {.card_hits = slots.hits,
          .card_misses = slots.misses,
          .ram_hits = pool.uses - misses,
          .ram_misses = misses,
          .ahead = pool.look_ahead + pool.preloaded,
          .bytes = pool.bytes,
          .swaps = slots.swapped};
}

}  // namespace strata::engine
