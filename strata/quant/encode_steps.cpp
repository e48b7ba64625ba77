#include "strata/quant/encode_steps.h"

#include <algorithm>
#include <cmath>

#include "strata/quant/bits.h"

namespace strata::quant {

double farthest(std::span<const float> x) {
  double best = 0;
  for (float value : x) {
    if (std::abs(value) > std::abs(best)) best = value;
  }
  return best;
}

double store_scale(std::byte* field, double scale) {
  store_f16(field, static_cast<float>(std::clamp(scale, -65504.0, 65504.0)));
  return load_f16(field);
}

int nearest_code(double x, double step, int low, int high) {
  if (step == 0) return std::clamp(0, low, high);
  const double code = std::nearbyint(x / step);
  return static_cast<int>(std::clamp<double>(code, low, high));
}

int nearest_entry(double x, double step, std::span<const int8_t> entries) {
  // Held within the entries: far outside, distances to all of them round to one number.
  const double target =
      step == 0 ? 0.0 : std::clamp<double>(x / step, entries.front(), entries.back());
  int best = 0;
  for (int i = 1; i < static_cast<int>(entries.size()); ++i) {
    if (std::abs(entries[i] - target) < std::abs(entries[best] - target)) best = i;
  }
  return best;
}

}  // namespace strata::quant
