#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "strata/base/ids.h"
#include "strata/base/view.h"
#include "strata/device/lease.h"

namespace strata::memory {

// How soon an expert will be wanted.
enum class Urgency : uint8_t { kNextLayer, kNextStep };

// The addresses of a layer's experts in host memory while the lease lives.
struct ExpertLease {
  // [experts, 3] gate, up, down; null where an expert is not of this lease. Valid until the next
  // acquire.
  View<const std::byte* const> parts;
  std::span<const ExpertId> here;  // those of `wanted` that it has; as long as parts
  device::Lease lease;             // ends the use; may be handed to Stream::release_after
};

class ExpertHeat;
class RamPool;

// The host's way to an expert's bytes. A layer lies in memory for good, in place; or its experts
// share a pool, and those that are not there are read from storage. One engine thread.
class ExpertStore {
 public:
  using Parts = std::array<const std::byte*, 3>;

  explicit ExpertStore(int n_layers) : layers_(static_cast<size_t>(n_layers)) {}

  // Tells where the experts of a layer lie; once a layer, before the first acquire.
  void add_layer(LayerId layer, std::vector<Parts> experts);
  // Of layers that were not added; both outlive this.
  void add_pool(RamPool& pool, const ExpertHeat& heat) { pool_ = &pool, heat_ = &heat; }

  // A hint that these will be wanted; may be dropped, as it is for what lies in memory for good.
  void expect(LayerId layer, std::span<const ExpertId> experts, Urgency urgency);

  // Every expert of a layer that lies in memory for good.
  ExpertLease acquire(LayerId layer);
  // Of the wanted, at least one; the caller uses it, ends the lease and comes again for the others,
  // which are read meanwhile. Errors: kIo.
  ExpertLease acquire(LayerId layer, std::span<const ExpertId> wanted);

  // Whoever asked has a copy of its own from now on.
  void moved(LayerId layer, ExpertId expert);

 private:
  std::vector<std::vector<Parts>> layers_;
  RamPool* pool_ = nullptr;
  const ExpertHeat* heat_ = nullptr;
};

}  // namespace strata::memory
