#pragma once

#include <span>
#include <string>
#include <vector>

#include "strata/memory/line.h"

namespace strata::memory {

// Every buffer of the engine, priced before the first is allocated. Each component adds its own
// lines.
class Plan {
 public:
  PlanLineId add(Line line);
  const Line& line(PlanLineId id) const { return lines_[static_cast<size_t>(id.value)]; }
  std::span<const Line> lines() const { return lines_; }

  // The largest sum of unmapped lines over the phases.
  Bytes peak(DeviceId where) const;
  Bytes peak(DeviceId where, Phase phase) const;  // in one of them
  Bytes mapped(DeviceId where) const;

  // Errors: kResourceExhausted with the table, if the peak exceeds the budget. hint: what would
  // make it fit.
  void require(DeviceId where, Bytes budget, const std::string& hint) const;

  // A table for people: owner, name, bytes, formula; one line a row, the total last.
  std::string table() const;

 private:
  std::vector<Line> lines_;
};

// "1.50 GiB", "24.0 MiB", "512 B".
std::string bytes_text(Bytes bytes);

}  // namespace strata::memory
