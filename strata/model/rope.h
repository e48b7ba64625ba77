#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace strata::model {

// Cosines and sines of rotary embedding for positions on three axes, computed in double on the
// host, so that every backend rotates by the same numbers.
struct RopeSettings {
  int dims = 0;  // rotated dims; pairs (i, i + dims / 2)
  double base = 0;
  std::vector<int> sections;  // T, H, W: pairs of each axis, interleaved
  double yarn_factor = 1;     // 1: off
  int64_t yarn_context = 0;
};

class Rope {
 public:
  using Position = std::array<int32_t, 3>;  // time, row, column; text has three equal ones

  explicit Rope(const RopeSettings& settings);
  int pairs() const { return static_cast<int>(frequency_.size()); }
  // out: 2 * pairs() floats, the cosines first.
  void fill(const Position& position, std::span<float> out) const;

 private:
  std::vector<double> frequency_;
  std::vector<int> axis_;
  double scale_ = 1;
};

}  // namespace strata::model
