// The scalar functions that every backend computes alike, bit for bit: no call into libm, explicit
// fused multiply-adds, branches that a compiler can turn into selects. Include it inside an
// anonymous namespace, after <cstdint>; never from a header. Cards name their own STRATA_FN.
// docs/numerics.md says what follows.
#ifndef STRATA_FN
#define STRATA_FN static inline
#endif

// A float whose bits are given, and back.
STRATA_FN float bits_to_float(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}
STRATA_FN uint32_t float_to_bits(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, 4);
  return bits;
}

// e^x to about 1 unit in the last place; 0 below -87.3, infinity from 88.3763 on, where n reaches
// 128 and the scale overflows. Range reduction by n ln 2 in two parts, then the degree-6 polynomial
// of Cephes' expf (Moshier 1992).
STRATA_FN float exp_c(float x) {
  // A NaN takes the lower bound here: no conversion of it to an integer.
  const float above = x > -87.3f ? x : -87.3f;
  const float clamped = above < 89.0f ? above : 89.0f;
  const float n = __builtin_rintf(clamped * 1.44269504088896341f);
  float r = __builtin_fmaf(n, -0.693359375f, clamped);
  r = __builtin_fmaf(n, 2.12194440e-4f, r);
  float p = 1.9875691500e-4f;
  p = __builtin_fmaf(p, r, 1.3981999507e-3f);
  p = __builtin_fmaf(p, r, 8.3334519073e-3f);
  p = __builtin_fmaf(p, r, 4.1665795894e-2f);
  p = __builtin_fmaf(p, r, 1.6666665459e-1f);
  p = __builtin_fmaf(p, r, 5.0000001201e-1f);
  p = __builtin_fmaf(p, r * r, r) + 1.0f;
  const float scale = bits_to_float(static_cast<uint32_t>(static_cast<int32_t>(n) + 127) << 23);
  const float y = p * scale;
  // A NaN must stay one: it is how a broken weight is noticed.
  return x != x ? x : (x < -87.3f ? 0.0f : y);
}

STRATA_FN float sigmoid_c(float x) { return 1.0f / (1.0f + exp_c(-x)); }
STRATA_FN float silu_c(float x) { return x * sigmoid_c(x); }

// ln x for normal x > 0, after Cephes' logf.
STRATA_FN float log_c(float x) {
  const uint32_t bits = float_to_bits(x);
  int32_t e = static_cast<int32_t>(bits >> 23) - 126;
  float m = bits_to_float((bits & 0x007fffffu) | 0x3f000000u);  // in [0.5, 1)
  if (m < 0.707106781186547524f) {
    m = m + m;
    e = e - 1;
  }
  const float f = m - 1.0f;
  const float ef = static_cast<float>(e);
  float p = 7.0376836292e-2f;
  p = __builtin_fmaf(p, f, -1.1514610310e-1f);
  p = __builtin_fmaf(p, f, 1.1676998740e-1f);
  p = __builtin_fmaf(p, f, -1.2420140846e-1f);
  p = __builtin_fmaf(p, f, 1.4249322787e-1f);
  p = __builtin_fmaf(p, f, -1.6668057665e-1f);
  p = __builtin_fmaf(p, f, 2.0000714765e-1f);
  p = __builtin_fmaf(p, f, -2.4999993993e-1f);
  p = __builtin_fmaf(p, f, 3.3333331174e-1f);
  const float f2 = f * f;
  float y = f2 * f * p;
  y = __builtin_fmaf(ef, -2.12194440e-4f, y);
  y = __builtin_fmaf(f2, -0.5f, y);
  return __builtin_fmaf(ef, 0.693359375f, f + y);
}

// ln(1 + e^x); x itself where x > 20. The rounding error of 1 + y is put back, so that small y keep
// their digits.
STRATA_FN float softplus_c(float x) {
  const float y = exp_c(x > 20.0f ? 20.0f : x);
  const float u = 1.0f + y;
  const float l = log_c(u) + (y - (u - 1.0f)) / u;
  return x > 20.0f ? x : l;
}

// The canonical sum of 32 lanes.
STRATA_FN float tree32(float* lane) {
  for (int width = 16; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) lane[l] = lane[l] + lane[l + width];
  }
  return lane[0];
}

// The canonical dot product: lane l takes the elements l, l + 32, ... by fused multiply-add.
STRATA_FN float dot_c(const float* a, const float* b, int64_t n) {
  float lane[32] = {};
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    for (int l = 0; l < 32; ++l) lane[l] = __builtin_fmaf(a[i + l], b[i + l], lane[l]);
  }
  for (int l = 0; i + l < n; ++l) lane[l] = __builtin_fmaf(a[i + l], b[i + l], lane[l]);
  return tree32(lane);
}

// The canonical sum, in the same lanes.
STRATA_FN float sum_c(const float* a, int64_t n) {
  float lane[32] = {};
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    for (int l = 0; l < 32; ++l) lane[l] = lane[l] + a[i + l];
  }
  for (int l = 0; i + l < n; ++l) lane[l] = lane[l] + a[i + l];
  return tree32(lane);
}

// 1 / sqrt(mean of squares + eps).
STRATA_FN float inverse_rms_c(const float* x, int64_t n, float eps) {
  return 1.0f / __builtin_sqrtf(dot_c(x, x, n) / static_cast<float>(n) + eps);
}

// Rule 1 of quant/canonical.h. The bits of magnitudes order like the numbers, with infinity and NaN
// on top; of the largest in a block: the factor of its codes, and its scale.
STRATA_FN uint32_t magnitude_bits_c(float x) { return float_to_bits(x) & 0x7FFFFFFFu; }
STRATA_FN bool has_codes_c(uint32_t most) { return most < 0x7F800000u && most >= 0x0D800000u; }
STRATA_FN float code_factor_c(uint32_t most) {
  return has_codes_c(most) ? 127.0f / bits_to_float(most) : 0.0f;
}
STRATA_FN float code_scale_c(uint32_t most) {
  if (most >= 0x7F800000u) return bits_to_float(0x7FC00000u);
  return has_codes_c(most) ? bits_to_float(most) / 127.0f : 0.0f;
}
STRATA_FN int8_t code_c(float x, float factor) {
  if (factor == 0) return 0;                          // x may be no number then
  const float rounded = __builtin_rintf(x * factor);  // ties to even
  return static_cast<int8_t>(rounded < -127.0f ? -127.0f : (rounded > 127.0f ? 127.0f : rounded));
}

// Uniform in (0, 1) with 23 bits, from a counter: splitmix64 over the key (Steele et al. 2014).
STRATA_FN uint64_t mix64_c(uint64_t z) {
  z += 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}
// Gumbel noise keyed by (seed, position, id): the same draw wherever and whenever it is made.
STRATA_FN float gumbel_c(uint64_t seed, uint64_t position, uint32_t id) {
  const uint64_t h = mix64_c(mix64_c(mix64_c(seed) ^ position) ^ id);
  const float u = (static_cast<float>(h >> 41) + 0.5f) * 0x1p-23f;
  return -log_c(-log_c(u));
}
