#include "strata/device/trips.h"

#include <algorithm>
#include <utility>

#include "strata/base/format.h"
#include "strata/base/log.h"

namespace strata::device {

std::string_view name(Feature feature) {
  switch (feature) {
    case Feature::kGraphs:
      return "graphs";
    case Feature::kDrafting:
      return "drafting";
    case Feature::kPeerCopies:
      return "peer copies";
    case Feature::kPinning:
      break;
  }
  return "pinning";
}

bool Trips::on(Feature feature, DeviceId device) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::none_of(
      list_, [&](const Trip& trip) { return trip.feature == feature && trip.device == device; });
}

void Trips::trip(Feature feature, DeviceId device, std::string why) {
  {
    const std::lock_guard lock(mutex_);
    for (const Trip& trip : list_) {
      if (trip.feature == feature && trip.device == device) return;
    }
    list_.push_back({feature, device, why});
  }
  log_warning(format("{} off on device {} from now on, the answers stay the same: {}",
                     name(feature), device.value, why));
}

std::vector<Trip> Trips::list() const {
  const std::lock_guard lock(mutex_);
  return list_;
}

}  // namespace strata::device
