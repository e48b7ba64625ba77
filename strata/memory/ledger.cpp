#include "strata/memory/ledger.h"

#include <algorithm>

#include "strata/base/check.h"
#include "strata/base/format.h"

namespace strata::memory {

Ledger::Ledger(const Plan& plan) : plan_(plan) {}

void Ledger::seal() {
  const std::lock_guard lock(mutex_);
  sealed_ = true;
}

bool Ledger::admit(DeviceId where, PlanLineId line, Bytes bytes) {
  const std::lock_guard lock(mutex_);
  used_.resize(plan_.lines().size());  // the plan grows until the weights are read
  if (line.value < 0 || static_cast<size_t>(line.value) >= used_.size()) {
    refused_ = format("{} B without a line of the plan", bytes);
    return false;
  }
  const Line& planned = plan_.line(line);
  Bytes& used = used_[static_cast<size_t>(line.value)];
  const bool fits = bytes <= planned.bytes - used && where == planned.where;
  const bool late = sealed_ && !planned.after_start;
  if (late || !fits) {
    refused_ = format("{} B for {} / {}: {}", bytes, planned.owner, planned.name,
                      late ? "nothing is allocated after the start" : "more than planned");
    return false;
  }
  used += bytes;
  Sum& sum = sums_[where];
  sum.now += bytes;
  sum.peak = std::max(sum.peak, sum.now);
  return true;
}

void Ledger::released(DeviceId where, PlanLineId line, Bytes bytes) {
  const std::lock_guard lock(mutex_);
  Bytes& used = used_[static_cast<size_t>(line.value)];
  STRATA_CHECK(bytes <= used);
  used -= bytes;
  sums_[where].now -= bytes;
}

Bytes Ledger::used(PlanLineId line) const {
  const std::lock_guard lock(mutex_);
  return used_of(line);
}

Bytes Ledger::peak(DeviceId where) const {
  const std::lock_guard lock(mutex_);
  const auto it = sums_.find(where);
  return it != sums_.end() ? it->second.peak : 0;
}

Bytes Ledger::used_of(PlanLineId line) const {
  const size_t i = static_cast<size_t>(line.value);
  return i < used_.size() ? used_[i] : 0;
}

std::string Ledger::table() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const Line& line : plan_.lines()) {
    text += format("  {:<12} {:<24} planned {:>11}  used {:>11}\n", line.owner, line.name,
                   bytes_text(line.bytes), bytes_text(used_of(line.id)));
  }
  if (!refused_.empty()) text += format("  refused: {}\n", refused_);
  return text;
}

}  // namespace strata::memory
