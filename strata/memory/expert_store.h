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

// The addresses of a layer's experts while the lease lives. Where the address of an expert is null,
// it is not here.
struct ExpertLease {
  View<const std::byte* const> parts;  // [experts, 3] gate, up, down
  device::Lease lease;                 // hand it to Stream::release_after
};

// The only way to an expert's bytes. Now with one tier: all experts lie in host memory, in place,
// for as long as the store lives. One engine thread.
class ExpertStore {
 public:
  using Parts = std::array<const std::byte*, 3>;

  explicit ExpertStore(int n_layers) : layers_(static_cast<size_t>(n_layers)) {}

  // Tells where the experts of a layer lie; once a layer, before the first acquire.
  void add_layer(LayerId layer, std::vector<Parts> experts);

  // A hint that these will be wanted; may be dropped. With all experts in memory it always is.
  void expect(LayerId layer, std::span<const ExpertId> experts, Urgency urgency);

  // Every expert of the layer that is here; all of them as long as there is one tier.
  ExpertLease acquire(LayerId layer);

  int n_experts(LayerId layer) const;

 private:
  std::vector<std::vector<Parts>> layers_;
};

}  // namespace strata::memory
