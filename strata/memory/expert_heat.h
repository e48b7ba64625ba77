#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strata/base/ids.h"
#include "strata/memory/expert_profile.h"

namespace strata::memory {

// How much each expert has been used of late: counts that halve every kHalfLife rows. What decides
// which experts get the fast memory, and what is learned for the next start.
class ExpertHeat {
 public:
  static constexpr int kHalfLife = 4096;

  // Begins with a profile's counts, or with nothing known (null).
  ExpertHeat(int n_layers, int n_experts, const ExpertProfile* profile);

  int n_layers() const { return n_layers_; }
  int n_experts() const { return n_experts_; }

  // Rows of a step chose these; an expert may stand there several times.
  void used(LayerId layer, std::span<const int32_t> experts);
  // A step of n rows is over.
  void age(int n_rows);

  // Comparable among each other until the next age(); grows with every use and never else.
  double of(ExpertPlace place) const { return of(place.layer, place.expert); }
  double of(int layer, int expert) const { return heat_[index(layer, expert)]; }
  // Changes when the numbers were scaled down: what was kept of them means nothing any more.
  uint64_t epoch() const { return epoch_; }
  bool learned() const { return learned_; }  // anything was used

  // Hottest first, of equals the one that ExpertProfile::unknown() has first.
  std::vector<ExpertPlace> ranked() const;
  // What was learned, to be read at the next start.
  ExpertProfile profile() const;

 private:
  size_t index(int layer, int expert) const {
    return static_cast<size_t>(layer) * static_cast<size_t>(n_experts_) +
           static_cast<size_t>(expert);
  }

  int n_layers_, n_experts_;
  std::vector<double> heat_;  // [layers, experts], in units of unit_
  double unit_ = 1;           // what one use adds now; grows instead of all others shrinking
  uint64_t epoch_ = 0;
  bool learned_ = false;
};

}  // namespace strata::memory
