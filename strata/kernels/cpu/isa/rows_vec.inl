// Registers of floats for rows.inl: V holds kV of them, 32 / kV registers are the canonical lanes.
// The sums have the order of canonical_math.inl, whose scalar forms serve what is left over.

#if defined(__AVX512F__)
using V = __m512;
constexpr int kV = 16;
static inline V zero() { return _mm512_setzero_ps(); }
static inline V all(float x) { return _mm512_set1_ps(x); }
static inline V load(const float* x) { return _mm512_loadu_ps(x); }
static inline V load(const uint16_t* x) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
}
static inline V load(const int8_t* x) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x))));
}
static inline void store(float* x, V v) { _mm512_storeu_ps(x, v); }
static inline void stream(float* x, V v) { _mm512_stream_ps(x, v); }
static inline V add(V a, V b) { return _mm512_add_ps(a, b); }
static inline V sub(V a, V b) { return _mm512_sub_ps(a, b); }
static inline V mul(V a, V b) { return _mm512_mul_ps(a, b); }
static inline V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
// a > b ? a : b
static inline V larger(V a, V b) { return _mm512_max_ps(a, b); }
static inline V smaller(V a, V b) { return _mm512_min_ps(a, b); }  // a < b ? a : b
static inline V divide(V a, V b) { return _mm512_div_ps(a, b); }
static inline V negated(V x) { return _mm512_xor_ps(x, _mm512_set1_ps(-0.0f)); }
static inline V rounded(V x) { return _mm512_roundscale_ps(x, 8); }
// 2^n for a whole n between -126 and 128, which gives infinity.
static inline V power_of_2(V n) {
  const __m512i e = _mm512_add_epi32(_mm512_cvttps_epi32(n), _mm512_set1_epi32(127));
  return _mm512_castsi512_ps(_mm512_slli_epi32(e, 23));
}
// x if it is no number, 0 below the limit, else y.
static inline V bounded(V x, V limit, V y) {
  y = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, limit, _CMP_NLT_UQ), y);
  return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
}
static inline uint32_t equal_mask(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
static inline uint32_t not_less_mask(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_GE_OQ); }
static inline __m256 halves_added(V v) {
  return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
}
static inline __m128 quarters_added(const V* lane) {
  const __m256 v = halves_added(add(lane[0], lane[1]));
  return _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
}
#else
using V = __m256;
constexpr int kV = 8;
static inline V zero() { return _mm256_setzero_ps(); }
static inline V all(float x) { return _mm256_set1_ps(x); }
static inline V load(const float* x) { return _mm256_loadu_ps(x); }
static inline V load(const uint16_t* x) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
}
static inline V load(const int8_t* x) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x))));
}
static inline void store(float* x, V v) { _mm256_storeu_ps(x, v); }
static inline void stream(float* x, V v) { _mm256_stream_ps(x, v); }
static inline V add(V a, V b) { return _mm256_add_ps(a, b); }
static inline V sub(V a, V b) { return _mm256_sub_ps(a, b); }
static inline V mul(V a, V b) { return _mm256_mul_ps(a, b); }
static inline V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
static inline V larger(V a, V b) { return _mm256_max_ps(a, b); }
static inline V smaller(V a, V b) { return _mm256_min_ps(a, b); }
static inline V divide(V a, V b) { return _mm256_div_ps(a, b); }
static inline V negated(V x) { return _mm256_xor_ps(x, _mm256_set1_ps(-0.0f)); }
static inline V rounded(V x) { return _mm256_round_ps(x, 8); }
static inline V power_of_2(V n) {
  const __m256i e = _mm256_add_epi32(_mm256_cvttps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(e, 23));
}
static inline V bounded(V x, V limit, V y) {
  y = _mm256_and_ps(_mm256_cmp_ps(x, limit, _CMP_NLT_UQ), y);
  return _mm256_blendv_ps(y, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}
static inline uint32_t equal_mask(V a, V b) {
  return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)));
}
static inline uint32_t not_less_mask(V a, V b) {
  return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GE_OQ)));
}
// Lanes 0-15 plus lanes 16-31, then eight, then four.
static inline __m128 quarters_added(const V* lane) {
  const __m256 v = add(add(lane[0], lane[2]), add(lane[1], lane[3]));
  return _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
}
#endif
constexpr int kLanes = 32;
constexpr int kL = kLanes / kV;  // registers of one canonical sum

// tree32 of canonical_math.inl.
static inline float tree(const V* lane) {
  const __m128 v = quarters_added(lane);
  const __m128 pair = _mm_add_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps(pair, pair, 1)));
}
// Four of them at once.
static inline __m128 tree4(const V* a, const V* b, const V* c, const V* d) {
  const __m128 qa = quarters_added(a), qb = quarters_added(b);
  const __m128 qc = quarters_added(c), qd = quarters_added(d);
  const __m128 ab = _mm_add_ps(_mm_unpacklo_ps(qa, qb), _mm_unpackhi_ps(qa, qb));
  const __m128 cd = _mm_add_ps(_mm_unpacklo_ps(qc, qd), _mm_unpackhi_ps(qc, qd));
  return _mm_add_ps(_mm_movelh_ps(ab, cd), _mm_movehl_ps(cd, ab));
}

// dot_c and sum_c of canonical_math.inl.
static inline float dot_v(const float* a, const float* b, int64_t n) {
  if (n % kLanes != 0) return dot_c(a, b, n);
  V lane[kL];
  for (int l = 0; l < kL; ++l) lane[l] = zero();
  for (int64_t i = 0; i < n; i += kLanes) {
    for (int l = 0; l < kL; ++l) lane[l] = fma(load(a + i + l * kV), load(b + i + l * kV), lane[l]);
  }
  return tree(lane);
}
static inline float sum_v(const float* a, int64_t n) {
  V lane[kL];
  for (int l = 0; l < kL; ++l) lane[l] = zero();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kL; ++l) lane[l] = add(lane[l], load(a + i + l * kV));
  }
  if (i == n) return tree(lane);
  float rest[kLanes];
  for (int l = 0; l < kL; ++l) store(rest + l * kV, lane[l]);
  for (int l = 0; i + l < n; ++l) rest[l] = rest[l] + a[i + l];
  return tree32(rest);
}
static inline float inverse_rms_v(const float* x, int64_t n, float eps) {
  return 1.0f / __builtin_sqrtf(dot_v(x, x, n) / static_cast<float>(n) + eps);
}

// exp_c, sigmoid_c and silu_c of canonical_math.inl, step for step: compilers leave those scalar.
static inline V exp_v(V x) {
  const V limit = all(-87.3f);
  const V clamped = smaller(larger(x, limit), all(89.0f));
  const V n = rounded(mul(clamped, all(1.44269504088896341f)));
  const V r = fma(n, all(2.12194440e-4f), fma(n, all(-0.693359375f), clamped));
  V p = all(1.9875691500e-4f);
  p = fma(p, r, all(1.3981999507e-3f));
  p = fma(p, r, all(8.3334519073e-3f));
  p = fma(p, r, all(4.1665795894e-2f));
  p = fma(p, r, all(1.6666665459e-1f));
  p = fma(p, r, all(5.0000001201e-1f));
  p = add(fma(p, mul(r, r), r), all(1.0f));
  return bounded(x, limit, mul(p, power_of_2(n)));
}
static inline V sigmoid_v(V x) { return divide(all(1.0f), add(all(1.0f), exp_v(negated(x)))); }
static inline V silu_v(V x) { return mul(x, sigmoid_v(x)); }

// out[i] = vector(i) for whole registers, scalar(i) for what is left.
template <class Vector, class Scalar>
static inline void fill(int64_t n, float* out, Vector vector, Scalar scalar) {
  int64_t i = 0;
  for (; i + kV <= n; i += kV) store(out + i, vector(i));
  for (; i < n; ++i) out[i] = scalar(i);
}
// x = exp(x - best)
static inline void exp_below(float* x, int64_t n, float best) {
  fill(
      n, x, [&](int64_t i) { return exp_v(sub(load(x + i), all(best))); },
      [&](int64_t i) { return exp_c(x[i] - best); });
}

// The largest element; what is no number loses, unless x[0] is none. n >= 1.
static inline float largest(const float* x, int64_t n) {
  float best = x[0];
  int64_t i = 0;
  if (n >= kV) {
    V most = all(best);
    for (; i + kV <= n; i += kV) most = larger(load(x + i), most);
    float lane[kV];
    store(lane, most);
    for (int l = 0; l < kV; ++l) best = lane[l] > best ? lane[l] : best;
  }
  for (; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}
// The first index with x[i] == value, or n.
static inline int64_t first_equal(const float* x, int64_t n, float value) {
  int64_t i = 0;
  for (const V wanted = all(value); i + kV <= n; i += kV) {
    const uint32_t mask = equal_mask(load(x + i), wanted);
    if (mask != 0) return i + __builtin_ctz(mask);
  }
  for (; i < n; ++i) {
    if (x[i] == value) return i;
  }
  return n;
}

// How many elements are not less than `least`.
static inline int64_t count_from(const float* x, int64_t n, float least) {
  int64_t count = 0, i = 0;
  for (const V v = all(least); i + kV <= n; i += kV) {
    count += __builtin_popcount(not_less_mask(load(x + i), v));
  }
  for (; i < n; ++i) count += x[i] >= least ? 1 : 0;
  return count;
}

// out[h * out_stride + c] = (q_h . key_c) * scale for kH queries, `dim` apart, and kC keys; dim is
// a multiple of kLanes.
template <int kH, int kC, class T>
static inline void dots(const float* q, const T* const* keys, int dim, float scale, float* out,
                        int64_t out_stride) {
  V acc[kH * kC][kL];
  for (auto& lanes : acc) {
    for (V& lane : lanes) lane = zero();
  }
  for (int i = 0; i < dim; i += kLanes) {
    for (int l = 0; l < kL; ++l) {
      V key[kC];
      for (int c = 0; c < kC; ++c) key[c] = load(keys[c] + i + l * kV);
      for (int h = 0; h < kH; ++h) {
        const V x = load(q + static_cast<int64_t>(h) * dim + i + l * kV);
        for (int c = 0; c < kC; ++c) acc[h * kC + c][l] = fma(x, key[c], acc[h * kC + c][l]);
      }
    }
  }
  int at = 0;
  for (; at + 4 <= kH * kC; at += 4) {
    float sum[4];
    _mm_storeu_ps(
        sum, _mm_mul_ps(tree4(acc[at], acc[at + 1], acc[at + 2], acc[at + 3]), _mm_set1_ps(scale)));
    for (int j = 0; j < 4; ++j) out[(at + j) / kC * out_stride + (at + j) % kC] = sum[j];
  }
  for (; at < kH * kC; ++at) out[at / kC * out_stride + at % kC] = tree(acc[at]) * scale;
}
