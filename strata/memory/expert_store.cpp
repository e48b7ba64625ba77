#include "strata/memory/expert_store.h"

#include <utility>

#include "strata/base/check.h"

namespace strata::memory {

void ExpertStore::add_layer(LayerId layer, std::vector<Parts> experts) {
  std::vector<Parts>& slot = layers_.at(static_cast<size_t>(layer.value));
  STRATA_CHECK(slot.empty());
  slot = std::move(experts);
}

void ExpertStore::expect(LayerId, std::span<const ExpertId>, Urgency) {}

ExpertLease ExpertStore::acquire(LayerId layer) {
  const std::vector<Parts>& experts = layers_.at(static_cast<size_t>(layer.value));
  // An array of arrays is one dense table.
  static_assert(sizeof(Parts) == 3 * sizeof(const std::byte*));
  return {.parts = View<const std::byte* const>(experts.data()->data(),
                                                {static_cast<int64_t>(experts.size()), 3}),
          .lease = {}};
}

ExpertLease ExpertStore::acquire(LayerId layer, std::span<const ExpertId> wanted) {
  ExpertLease lease = acquire(layer);
  lease.here = wanted;
  return lease;
}

int ExpertStore::n_experts(LayerId layer) const {
  return static_cast<int>(layers_.at(static_cast<size_t>(layer.value)).size());
}

}  // namespace strata::memory
