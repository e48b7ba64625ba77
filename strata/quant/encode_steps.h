#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

// Steps that encoders share. They work in double, so that no finite input overflows on the way.
namespace strata::quant {

// The value of largest magnitude, with its sign; 0 of an empty span.
double farthest(std::span<const float> x);

// Stores the scale as f16 (beyond its range: the largest f16) and returns what it then is, so that
// codes fit the scale a reader will see.
double store_scale(std::byte* field, double scale);

// round(x / step) within [low, high], ties to even; 0 if step is 0.
int nearest_code(double x, double step, int low, int high);

// The index i for which step * entries[i] is nearest x, the lower of two; entries ascend. If step
// is 0, the entry nearest zero.
int nearest_entry(double x, double step, std::span<const int8_t> entries);

}  // namespace strata::quant
