#pragma once

#include <string>
#include <vector>

#include "strata/base/ids.h"
#include "strata/memory/placement.h"

namespace strata::memory {

// Layers in proportion to the budgets of the cards; a card without any has none.
std::vector<int> split_by_budget(const std::vector<Bytes>& budgets, int n_layers);

// "20,28".
std::string split_text(const std::vector<int>& layers);

// All splits that differ by `step` layers moved from one card to the next or back. A card may lose
// all of its layers.
std::vector<std::vector<int>> neighbours(const std::vector<int>& layers, int step);

// The placement with card i computing layers[i] layers (none: the host computes all), head and
// draft layer where the last layer is; the rest as in `rest`.
Placement place_layers(const std::vector<int>& layers, const Placement& rest);

}  // namespace strata::memory
