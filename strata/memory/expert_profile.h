#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strata/base/ids.h"

namespace strata::memory {

// One expert of one layer.
struct ExpertPlace {
  uint16_t layer = 0, expert = 0;
  bool operator==(const ExpertPlace&) const = default;
};

// Which experts a model uses most: what decides who gets the fast memory first.
struct ExpertProfile {
  int n_layers = 0, n_experts = 0;
  std::vector<ExpertPlace> ranked;  // hottest first; every expert at most once
  std::vector<int32_t> counts;      // [n_layers, n_experts] how often each was chosen

  // Nothing known: every expert, the first of each layer before the second of any.
  static ExpertProfile unknown(int n_layers, int n_experts);
  // Ranked by falling count; of equals the one that unknown() has first.
  static ExpertProfile from_counts(int n_layers, int n_experts, std::vector<int32_t> counts);

  bool operator==(const ExpertProfile&) const = default;
};

// A profile file: "STRP", then u32 words version 1, layers, experts, slots a layer that the maker
// had (0: not told), n ranked; n times u16 layer, u16 expert; counts as int32. Little-endian.
// Errors: kNotFound, kIo; kCorruptFile naming what is wrong and where.
ExpertProfile read_expert_profile(const std::string& path);

// Complete or not at all (io::AtomicFile). Errors: kNotFound, kIo.
void write_expert_profile(const std::string& path, const ExpertProfile& profile);

// The profile at `path` for a model of this shape. A file that is damaged, made for another shape
// or no profile at all is no reason not to start: one warning, and nothing.
std::optional<ExpertProfile> usable_expert_profile(const std::string& path, int n_layers,
                                                   int n_experts);

}  // namespace strata::memory
