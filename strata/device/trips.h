#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "strata/base/ids.h"

namespace strata::device {

// What makes answers faster and can be done without: each has a slower way with the same bits.
enum class Feature : uint8_t { kGraphs, kDrafting, kPeerCopies, kPinning };
inline constexpr Feature kFeatures[] = {Feature::kGraphs, Feature::kDrafting, Feature::kPeerCopies,
                                        Feature::kPinning};
// "graphs", "drafting", "peer copies", "pinning".
std::string_view name(Feature feature);

struct Trip {
  Feature feature = Feature::kGraphs;
  DeviceId device{};
  std::string why;  // the operation, and what the device said
};

// Which features have been switched off because they failed: each on a device once, with one
// warning, and for as long as the process lives. Any thread.
class Trips {
 public:
  bool on(Feature feature, DeviceId device) const;
  // From now on it is off there. Only the first call for a device tells.
  void trip(Feature feature, DeviceId device, std::string why);
  std::vector<Trip> list() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Trip> list_;
};

}  // namespace strata::device
