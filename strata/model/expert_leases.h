#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include "strata/memory/expert_store.h"

namespace strata::model {

// Calls use(lease) until each of the wanted experts was in one of the leases, those first that are
// here. wanted ascends and is empty afterwards; rest is room to work with.
template <class Use>
void for_leases(memory::ExpertStore& store, LayerId layer, std::vector<ExpertId>& wanted,
                std::vector<ExpertId>& rest, Use use) {
  while (!wanted.empty()) {
    const memory::ExpertLease lease = store.acquire(layer, wanted);
    use(lease);
    rest.clear();
    std::ranges::set_difference(wanted, lease.here, std::back_inserter(rest));
    wanted.swap(rest);
  }
}

}  // namespace strata::model
