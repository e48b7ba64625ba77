#include "strata/memory/expert_heat.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "strata/base/check.h"

namespace strata::memory {
namespace {

// Weighs as much as so many rows: enough that one odd request does not turn everything over, and
// little enough that an evening of another subject does.
constexpr double kRowsOfProfile = 2 * ExpertHeat::kHalfLife;
// Far from where doubles lose digits beside each other.
constexpr double kLargestUnit = 1e9;
constexpr double kLargestCount = 1e9;

}  // namespace

ExpertHeat::ExpertHeat(int n_layers, int n_experts, const ExpertProfile* profile)
    : n_layers_(n_layers),
      n_experts_(n_experts),
      heat_(static_cast<size_t>(n_layers) * static_cast<size_t>(n_experts)) {
  if (profile == nullptr || profile->n_experts != n_experts) return;
  const size_t known =
      static_cast<size_t>(std::min(profile->n_layers, n_layers)) * static_cast<size_t>(n_experts);
  const auto counts = std::span(profile->counts).first(std::min(known, profile->counts.size()));
  const double sum = std::accumulate(counts.begin(), counts.end(), 0.0);
  if (sum > 0) {
    const double rows = sum / std::max(1, profile->n_layers);
    for (size_t i = 0; i < counts.size(); ++i) heat_[i] = counts[i] * (kRowsOfProfile / rows);
  }
  // A maker may have ranked without counting: the order then decides among equals.
  const auto n = static_cast<double>(profile->ranked.size());
  for (size_t i = 0; i < profile->ranked.size(); ++i) {
    const ExpertPlace& place = profile->ranked[i];
    if (place.layer < n_layers && place.expert < n_experts) {
      heat_[index(place.layer, place.expert)] += 1e-3 * (1 - static_cast<double>(i) / n);
    }
  }
}

void ExpertHeat::used(LayerId layer, std::span<const int32_t> experts) {
  STRATA_CHECK(layer.value >= 0 && layer.value < n_layers_);
  double* const row = &heat_[index(layer.value, 0)];
  for (const int32_t e : experts) row[e] += unit_;
  learned_ = learned_ || !experts.empty();
}

void ExpertHeat::age(int n_rows) {
  unit_ *= std::exp2(static_cast<double>(n_rows) / kHalfLife);
  if (unit_ < kLargestUnit) return;
  for (double& heat : heat_) heat /= unit_;
  unit_ = 1;
  ++epoch_;
}

std::vector<ExpertPlace> ExpertHeat::ranked() const {
  std::vector<ExpertPlace> places = ExpertProfile::unknown(n_layers_, n_experts_).ranked;
  std::ranges::stable_sort(
      places, [this](const ExpertPlace& a, const ExpertPlace& b) { return of(a) > of(b); });
  return places;
}

ExpertProfile ExpertHeat::profile() const {
  std::vector<int32_t> counts(heat_.size());
  const double most = heat_.empty() ? 0 : *std::ranges::max_element(heat_);
  // In rows; more than an int32 holds is scaled, the ranking stays.
  const double scale = std::min(1 / unit_, most > 0 ? kLargestCount / most : 1);
  for (size_t i = 0; i < heat_.size(); ++i) {
    counts[i] = static_cast<int32_t>(std::lround(heat_[i] * scale));
  }
  return ExpertProfile::from_counts(n_layers_, n_experts_, std::move(counts));
}

}  // namespace strata::memory
