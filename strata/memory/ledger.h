#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "strata/device/memory.h"
#include "strata/memory/plan.h"

namespace strata::memory {

// Keeps the allocations to the plan: a line never holds more than it was planned, and once sealed
// nothing is allocated at all. Installed as the devices' gate; any thread.
class Ledger final : public device::AllocationGate {
 public:
  explicit Ledger(const Plan& plan);

  // From here on (READY) the gate says no, except to lines that may be taken after the start.
  void seal();

  bool admit(DeviceId where, PlanLineId line, Bytes bytes) override;
  void released(DeviceId where, PlanLineId line, Bytes bytes) override;

  Bytes used(PlanLineId line) const;
  // The most that was in use at one time.
  Bytes peak(DeviceId where) const;
  // The plan's lines with planned and used bytes, and what was refused last.
  std::string table() const;

 private:
  Bytes used_of(PlanLineId line) const;

  const Plan& plan_;
  mutable std::mutex mutex_;
  std::vector<Bytes> used_;
  struct Sum {
    Bytes now = 0, peak = 0;
  };
  std::map<DeviceId, Sum> sums_;
  bool sealed_ = false;
  std::string refused_;
};

}  // namespace strata::memory
