#include "strata/device/wait_registry.h"

#include <algorithm>

#include "strata/base/format.h"

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

void WaitRegistry::set_bound(Deadline bound) {
  const std::lock_guard lock(mutex_);
  bound_ = bound;
}

Deadline WaitRegistry::bounded(Deadline deadline) const {
  const std::lock_guard lock(mutex_);
  return {std::min(deadline.at, bound_.at)};
}

void WaitRegistry::set_blocked_by(std::string_view text) {
  const std::lock_guard lock(mutex_);
  const size_t n = std::min(text.size(), blocked_by_.size() - 1);
  std::copy_n(text.begin(), n, blocked_by_.begin());
  blocked_by_[n] = '\0';
}

std::string WaitRegistry::blocked_by() const {
  const std::lock_guard lock(mutex_);
  return blocked_by_.data();
}

std::string WaitRegistry::late_text(Clock::TimePoint since) const {
  const std::chrono::duration<double> time = clock_.now() - since;
  const std::string by = blocked_by();
  return format("within {:.1f} s{}{}", time.count(), by.empty() ? "" : "; held up by ", by);
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
