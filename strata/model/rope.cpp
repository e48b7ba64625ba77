#include "strata/model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "strata/base/check.h"

namespace strata::model {

Rope::Rope(const RopeSettings& settings) {
  const int pairs = settings.dims / 2;
  const double d = settings.dims;
  for (int i = 0; i < pairs; ++i) {
    frequency_.push_back(std::pow(settings.base, -2.0 * i / d));
    const bool row = i % 3 == 1 && i < 3 * settings.sections[1];
    const bool column = i % 3 == 2 && i < 3 * settings.sections[2];
    axis_.push_back(row ? 1 : column ? 2 : 0);
  }
  if (!(settings.yarn_factor > 1)) return;
  // Pairs that turn fewer than once in the trained context are stretched, those that turn more than
  // 32 times are kept, with a ramp between (Peng et al. 2023, arXiv:2309.00071).
  const auto pair_of = [&](double turns) {
    const double length = static_cast<double>(settings.yarn_context);
    return d * std::log(length / (2 * std::numbers::pi * turns)) / (2 * std::log(settings.base));
  };
  const double low = std::max(std::floor(pair_of(32)), 0.0);
  const double high = std::min(std::ceil(pair_of(1)), d - 1);
  for (int i = 0; i < pairs; ++i) {
    const double ramp = std::clamp((i - low) / std::max(high - low, 0.001), 0.0, 1.0);
    double& f = frequency_[static_cast<size_t>(i)];
    f = f * (1 - ramp) + f / settings.yarn_factor * ramp;
  }
  scale_ = 1 + 0.1 * std::log(settings.yarn_factor);
}

void Rope::fill(const Position& position, std::span<float> out) const {
  STRATA_CHECK(out.size() == 2 * frequency_.size());
  for (size_t i = 0; i < frequency_.size(); ++i) {
    const double angle = position[static_cast<size_t>(axis_[i])] * frequency_[i];
    out[i] = static_cast<float>(std::cos(angle) * scale_);
    out[frequency_.size() + i] = static_cast<float>(std::sin(angle) * scale_);
  }
}

}  // namespace strata::model
