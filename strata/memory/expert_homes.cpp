#include "strata/memory/expert_homes.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

namespace strata::memory {

int StageSlots::n() const { return std::accumulate(slots.begin(), slots.end(), 0); }

bool StageSlots::everything(const PlanSource& model) const {
  return std::ranges::all_of(slots, [&](int n) { return n >= model.n_experts(); });
}

StageSlots divide_slots(const PlanSource& model, DeviceId where, std::vector<int> layers,
                        Bytes left, int most, Divide how) {
  most = std::min(most, model.n_experts());
  Bytes one_each = 0;
  for (int l : layers) one_each += model.blob_bytes(l);
  StageSlots stage{.where = where, .layers = std::move(layers)};
  if (one_each == 0 || most <= 0) {
    stage.slots.assign(stage.layers.size(), 0);
    return stage;
  }
  Bytes left_by_layer = left;
  for (int l : stage.layers) {
    const Bytes room =
        how == Divide::kEqually ? left / one_each : left_by_layer / model.blob_bytes(l);
    stage.slots.push_back(static_cast<int>(std::min(room, static_cast<Bytes>(most))));
    left_by_layer -= static_cast<Bytes>(stage.slots.back()) * model.blob_bytes(l);
  }
  left = left_by_layer;
  std::map<Bytes, int> classes;
  for (size_t i = 0; i < stage.layers.size(); ++i) {
    const Bytes blob = model.blob_bytes(stage.layers[i]);
    if (blob <= left && stage.slots[i] < most) {
      ++stage.slots[i];
      left -= blob;
    }
    if (stage.slots[i] == 0) continue;
    classes[blob] += stage.slots[i];
    stage.bytes += static_cast<Bytes>(stage.slots[i]) * blob;
  }
  for (const auto& [bytes, n] : classes) stage.classes.push_back({bytes, n});
  return stage;
}

double hit_rate(const ExpertProfile* profile, int layer, int n, int n_experts) {
  if (n <= 0 || n_experts <= 0) return 0;
  if (n >= n_experts) return 1;
  if (profile != nullptr && layer < profile->n_layers && n_experts == profile->n_experts) {
    const auto first = profile->counts.begin() + std::ptrdiff_t{layer} * n_experts;
    std::vector<int32_t> counts(first, first + n_experts);
    std::ranges::sort(counts, std::greater<>());
    const int64_t all = std::accumulate(counts.begin(), counts.end(), int64_t{0});
    const int64_t hot = std::accumulate(counts.begin(), counts.begin() + n, int64_t{0});
    if (all > 0) return static_cast<double>(hot) / static_cast<double>(all);
  }
  constexpr std::array<std::pair<double, double>, 4> kPublished = {
      {{0, 0}, {64. / 512, 0.67}, {128. / 512, 0.81}, {1, 1}}};
  const double share = static_cast<double>(n) / n_experts;
  for (size_t i = 1; i < kPublished.size(); ++i) {
    const auto& [x0, y0] = kPublished[i - 1];
    const auto& [x1, y1] = kPublished[i];
    if (share <= x1) return y0 + (y1 - y0) * (share - x0) / (x1 - x0);
  }
  return 1;
}

}  // namespace strata::memory
