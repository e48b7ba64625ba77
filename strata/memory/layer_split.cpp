#include "strata/memory/layer_split.h"

#include <algorithm>
#include <numeric>

#include "strata/base/format.h"

namespace strata::memory {

std::vector<int> split_by_budget(const std::vector<Bytes>& budgets, int n_layers) {
  const double all = std::accumulate(budgets.begin(), budgets.end(), 0.0);
  std::vector<int> layers(budgets.size(), 0);
  double sum = 0;
  int given = 0;
  for (size_t i = 0; i < budgets.size() && all > 0; ++i) {
    sum += static_cast<double>(budgets[i]);
    const int end = static_cast<int>(n_layers * (sum / all) + 0.5);
    layers[i] = end - given;
    given = end;
  }
  if (given < n_layers && !layers.empty()) layers.back() += n_layers - given;
  return layers;
}

std::string split_text(const std::vector<int>& layers) {
  std::string text;
  for (const int n : layers) text += format("{}{}", text.empty() ? "" : ",", n);
  return text;
}

std::vector<std::vector<int>> neighbours(const std::vector<int>& layers, int step) {
  std::vector<std::vector<int>> all;
  const auto move = [&](size_t from, size_t to) {
    if (layers[from] < step) return;
    std::vector<int> next = layers;
    next[from] -= step;
    next[to] += step;
    all.push_back(std::move(next));
  };
  for (size_t i = 0; i + 1 < layers.size(); ++i) {
    move(i, i + 1);
    move(i + 1, i);
  }
  return all;
}

Placement place_layers(const std::vector<int>& layers, const Placement& rest) {
  Placement placement = rest;
  const int n_layers = rest.stages.back().end_layer;
  placement.stages.clear();
  int first = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] == 0) continue;
    placement.stages.push_back({DeviceId(static_cast<int32_t>(i + 1)), first, first + layers[i]});
    first += layers[i];
  }
  if (placement.stages.empty()) placement.stages.push_back({DeviceId(0), 0, n_layers});
  placement.head = placement.stages.back().where;
  if (placement.drafts()) placement.draft = placement.head;
  return placement;
}

}  // namespace strata::memory
