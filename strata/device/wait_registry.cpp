#include "strata/device/wait_registry.h"

#include <algorithm>

namespace strata::device {

std::vector<WaitRow> WaitRegistry::rows() const {
  std::vector<WaitRow> rows;
  {
    const std::lock_guard lock(mutex_);
    for (const Slot& slot : slots_) {
      if (slot.used) rows.push_back(slot.row);
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const WaitRow& a, const WaitRow& b) { return a.since < b.since; });
  return rows;
}

WaitRegistry::Scope::Scope(WaitRegistry& registry, const WaitFor& what, DeviceId device,
                           Deadline deadline)
    : registry_(registry) {
  const Clock::TimePoint now = registry.clock_.now();
  const std::lock_guard lock(registry.mutex_);
  for (int i = 0; i < kMaxWaits; ++i) {
    Slot& slot = registry.slots_[static_cast<size_t>(i)];
    if (slot.used) continue;
    slot = {.used = true, .row = {what, device, now, deadline}};
    slot_ = i;
    return;
  }
}

WaitRegistry::Scope::~Scope() {
  if (slot_ < 0) return;
  const std::lock_guard lock(registry_.mutex_);
  registry_.slots_[static_cast<size_t>(slot_)].used = false;
}

}  // namespace strata::device
