#include "strata/quant/canonical.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "strata/base/check.h"
#include "strata/quant/term.h"

namespace strata::quant {
namespace {

constexpr int kSegments = 8;
constexpr int kLanes = 32;
constexpr float kNan = std::bit_cast<float>(0x7FC00000U);

// Returns the block's scale.
float quantize_block(const float* x, int n, int8_t* q) {
  std::fill(q, q + n, int8_t{0});
  float amax = 0;
  for (int j = 0; j < n; ++j) {
    if (!std::isfinite(x[j])) return kNan;
    amax = std::max(amax, std::abs(x[j]));
  }
  if (amax < 0x1p-100F) return 0;
  const float inverse = 127.0F / amax;
  for (int j = 0; j < n; ++j) {
    const float rounded = std::nearbyint(x[j] * inverse);
    q[j] = static_cast<int8_t>(std::clamp(rounded, -127.0F, 127.0F));
  }
  return amax / 127.0F;
}

// Adds one term to acc.
float add_term(const TypeTraits& t, const Term& term, const int8_t* q, float dx, float acc) {
  int32_t isum = 0;
  int32_t imin = 0;
  for (int j = 0; j < t.term_values; ++j) {
    const int g = j / Term::kGroup;
    isum += term.scale[g] * term.code[j] * q[j];
    if (t.has_min) imin += term.min[g] * q[j];
  }
  acc = std::fma(static_cast<float>(isum), term.d * dx, acc);
  if (t.has_min) acc = std::fma(-static_cast<float>(imin), term.dmin * dx, acc);
  return acc;
}

}  // namespace

int activation_block(Type type) {
  const int block = traits(type).activation_block;
  STRATA_CHECK(block > 0);
  return block;
}

QuantRow quantize_row(const float* x, int n, int block) {
  STRATA_CHECK(block == 32 || block == 256);
  STRATA_CHECK(n >= 0 && n % block == 0);
  QuantRow row{std::vector<int8_t>(n), std::vector<float>(n / block), block};
  for (int b = 0; b < n / block; ++b) {
    row.scale[b] = quantize_block(x + b * block, block, row.q.data() + b * block);
  }
  return row;
}

float dot_canonical(Type type, const std::byte* weight_row, int n, const QuantRow& x) {
  const TypeTraits& t = traits(type);
  STRATA_CHECK(t.unpack != nullptr);
  STRATA_CHECK(n >= 0 && n % t.block_values == 0 && n % t.activation_block == 0);
  STRATA_CHECK(x.block == t.activation_block && x.q.size() == static_cast<size_t>(n));
  const int n_blocks = n / x.block;
  const int terms_per_weight_block = t.block_values / t.term_values;
  Term term;
  float result = 0;
  for (int s = 0; s < kSegments; ++s) {
    const int end = (s + 1) * n_blocks / kSegments;
    float acc = 0;
    for (int b = s * n_blocks / kSegments; b < end; ++b) {
      for (int j = b * x.block; j < (b + 1) * x.block; j += t.term_values) {
        const std::byte* block =
            weight_row + static_cast<ptrdiff_t>(j / t.block_values) * t.block_bytes;
        t.unpack(block, j / t.term_values % terms_per_weight_block, term);
        acc = add_term(t, term, x.q.data() + j, x.scale[b], acc);
      }
    }
    result = s == 0 ? acc : result + acc;
  }
  return result;
}

float dot_float(const float* a, const float* b, int n) {
  std::array<float, kLanes> lane{};
  for (int i = 0; i < n; ++i) lane[i % kLanes] = std::fma(a[i], b[i], lane[i % kLanes]);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) lane[l] += lane[l + width];
  }
  return lane[0];
}

}  // namespace strata::quant
