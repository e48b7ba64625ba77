// Rule 1 of quant/canonical.h. AVX2 code, the same in every table.

// Eight codes of eight floats, as 32-bit integers within -127..127.
inline __m256i codes8(const float* x, __m256 inverse) {
  const __m256i q = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inverse));  // ties to even
  return _mm256_min_epi32(_mm256_max_epi32(q, _mm256_set1_epi32(-127)), _mm256_set1_epi32(127));
}

// The bits of max |x|: as integers they order like the numbers, with infinity and NaN on top.
inline int32_t max_bits(const float* x, int n) {
  const __m256i magnitude = _mm256_set1_epi32(0x7FFFFFFF);
  __m256i most = _mm256_setzero_si256();
  for (int i = 0; i < n; i += 8) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    most = _mm256_max_epi32(most, _mm256_and_si256(v, magnitude));
  }
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4E));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xB1));
  return _mm_cvtsi128_si32(m);
}

inline void quantize_block(const float* x, int block, int8_t* q, int8_t* crossed, float* scale,
                           int16_t* sums) {
  constexpr int32_t kInfinity = 0x7F800000;
  constexpr int32_t kTiny = 0x0D800000;  // 2^-100
  const int32_t bits = max_bits(x, block);
  float amax;
  __builtin_memcpy(&amax, &bits, 4);
  float inverse = 0;
  if (bits >= kInfinity || bits < kTiny) {
    const int32_t fixed = bits >= kInfinity ? 0x7FC00000 : 0;
    __builtin_memcpy(scale, &fixed, 4);
    __builtin_memset(q, 0, static_cast<size_t>(block));
    if (crossed) __builtin_memset(crossed, 0, static_cast<size_t>(block));
    __builtin_memset(sums, 0, sizeof(int16_t) * static_cast<size_t>(block / 16));
    return;
  }
  *scale = amax / 127.0f;
  inverse = 127.0f / amax;
  const __m256 factor = _mm256_set1_ps(inverse);
  for (int i = 0; i < block; i += 16) {
    // Packing works in halves of 128 bits: 0..3 8..11 | 4..7 12..15.
    const __m256i words = _mm256_packs_epi32(codes8(x + i, factor), codes8(x + i + 8, factor));
    const __m256i ordered = _mm256_permute4x64_epi64(words, 0xD8);
    const __m128i low = _mm256_castsi256_si128(ordered);
    const __m128i high = _mm256_extracti128_si256(ordered, 1);
    const __m128i codes = _mm_packs_epi16(low, high);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q + i), codes);
    if (crossed) {
      const __m128i cross = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(crossed + i), _mm_shuffle_epi8(codes, cross));
    }
    __m128i sum = _mm_madd_epi16(_mm_add_epi16(low, high), _mm_set1_epi16(1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1));
    sums[i / 16] = static_cast<int16_t>(_mm_cvtsi128_si32(sum));
  }
}

void quantize(const float* x, int64_t n, int block, int8_t* q, int8_t* crossed, float* scale,
              int16_t* sums) {
  for (int64_t i = 0; i < n; i += block) {
    quantize_block(x + i, block, q + i, crossed ? crossed + i : nullptr, scale + i / block,
                   sums + i / 16);
  }
}
