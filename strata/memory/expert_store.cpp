#include "strata/memory/expert_store.h"

#include <utility>

#include "strata/base/check.h"
#include "strata/memory/ram_pool.h"

namespace strata::memory {

void ExpertStore::add_layer(LayerId layer, std::vector<Parts> experts) {
  std::vector<Parts>& slot = layers_.at(static_cast<size_t>(layer.value));
  STRATA_CHECK(slot.empty());
  slot = std::move(experts);
}

void ExpertStore::expect(LayerId layer, std::span<const ExpertId> experts, Urgency) {
  if (pool_ != nullptr) pool_->expect(layer, experts, *heat_);
}

void ExpertStore::moved(LayerId layer, ExpertId expert) {
  if (pool_ == nullptr) return;
  pool_->forget({static_cast<uint16_t>(layer.value), static_cast<uint16_t>(expert.value)});
}

ExpertLease ExpertStore::acquire(LayerId layer) {
  const std::vector<Parts>& experts = layers_.at(static_cast<size_t>(layer.value));
  STRATA_CHECK(!experts.empty());
  // An array of arrays is one dense table.
  static_assert(sizeof(Parts) == 3 * sizeof(const std::byte*));
  return {.parts = View<const std::byte* const>(experts.data()->data(),
                                                {static_cast<int64_t>(experts.size()), 3}),
          .lease = {}};
}

ExpertLease ExpertStore::acquire(LayerId layer, std::span<const ExpertId> wanted) {
  if (pool_ != nullptr && pool_->has(layer)) return pool_->acquire(layer, wanted, *heat_);
  ExpertLease lease = acquire(layer);
  lease.here = wanted;
  return lease;
}

}  // namespace strata::memory
