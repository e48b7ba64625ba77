// Sixteen 32-bit lanes. Lane r belongs to weight row r of a tile.
struct Vec {
  using Int = __m512i;
  using Float = __m512;
  static constexpr int kLanes = 16;
  // Codes of eight bits are kept with their top bit flipped, so that vpdpbusd can take them.
  static constexpr bool kSigned8 = false;

  static Int zero() { return _mm512_setzero_si512(); }
  static Int all8(int x) { return _mm512_set1_epi8(static_cast<char>(x)); }
  static Int all16(int x) { return _mm512_set1_epi16(static_cast<short>(x)); }
  static Int all32(int x) { return _mm512_set1_epi32(x); }
  static Int load(const void* p) { return _mm512_load_si512(p); }
  static void store(void* p, Int x) { _mm512_store_si512(p, x); }
  static Int bit_and(Int a, Int b) { return _mm512_and_si512(a, b); }
  static Int bit_or(Int a, Int b) { return _mm512_or_si512(a, b); }
  static Int bit_xor(Int a, Int b) { return _mm512_xor_si512(a, b); }
  template <int n>
  static Int shift_right(Int a) {
    return n == 0 ? a : _mm512_srli_epi32(a, n);
  }
  template <int n>
  static Int shift_left(Int a) {
    return n == 0 ? a : _mm512_slli_epi32(a, n);
  }
  static Int sign_byte(Int a) { return _mm512_srai_epi32(_mm512_slli_epi32(a, 24), 24); }
  static Int add32(Int a, Int b) { return _mm512_add_epi32(a, b); }
  static Int sub32(Int a, Int b) { return _mm512_sub_epi32(a, b); }
  static Int mul32(Int a, Int b) { return _mm512_mullo_epi32(a, b); }
  static Int add8(Int a, Int b) { return _mm512_add_epi8(a, b); }
  // 0xFF in each byte where a has all bits of b.
  static Int has_bits8(Int a, Int b) {
    return _mm512_movm_epi8(_mm512_cmpeq_epi8_mask(_mm512_and_si512(a, b), b));
  }
  // Each byte of index (0..15) replaced by the entry of a 16-byte table.
  static Int table16(const void* table) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(static_cast<const __m128i*>(table)));
  }
  static Int look_up(Int table, Int index) { return _mm512_shuffle_epi8(table, index); }
  // The i-th byte of each lane in all four bytes of the lane.
  template <int i>
  static Int spread_byte(Int a) {
    const __m128i lane = _mm_add_epi8(
        _mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12), _mm_set1_epi8(i));
    return _mm512_shuffle_epi8(a, _mm512_broadcast_i32x4(lane));
  }
  // acc + a.even * b.even + a.odd * b.odd of the two 16-bit halves of each lane.
  static Int add_pairs(Int acc, Int a, Int b) { return _mm512_dpwssd_epi32(acc, a, b); }

  static Float to_float(Int a) { return _mm512_cvtepi32_ps(a); }
  static Float load_float(const float* p) { return _mm512_load_ps(p); }
  static void store_float(float* p, Float x) { _mm512_store_ps(p, x); }
  static Float all_float(float x) { return _mm512_set1_ps(x); }
  static Float zero_float() { return _mm512_setzero_ps(); }
  static Float mul(Float a, Float b) { return _mm512_mul_ps(a, b); }
  static Float add(Float a, Float b) { return _mm512_add_ps(a, b); }
  static Float fma(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
  static Float fnma(Float a, Float b, Float c) { return _mm512_fnmadd_ps(a, b, c); }
  static Float load_half(const uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(p)));
  }

  static __m128i load16(const uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  // 16 bytes of each of 16 rows: out[k] holds bytes 4k..4k+3, one row a lane.
  static void load_rows16(const uint8_t* const* row, size_t at, Int out[4]) {
    Int z[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      z[i] = _mm512_castsi128_si512(load16(row[i] + at));
      z[i] = _mm512_inserti32x4(z[i], load16(row[i + 4] + at), 1);
      z[i] = _mm512_inserti32x4(z[i], load16(row[i + 8] + at), 2);
      z[i] = _mm512_inserti32x4(z[i], load16(row[i + 12] + at), 3);
    }
    const Int t0 = _mm512_unpacklo_epi32(z[0], z[1]);
    const Int t1 = _mm512_unpackhi_epi32(z[0], z[1]);
    const Int t2 = _mm512_unpacklo_epi32(z[2], z[3]);
    const Int t3 = _mm512_unpackhi_epi32(z[2], z[3]);
    out[0] = _mm512_unpacklo_epi64(t0, t2);
    out[1] = _mm512_unpackhi_epi64(t0, t2);
    out[2] = _mm512_unpacklo_epi64(t1, t3);
    out[3] = _mm512_unpackhi_epi64(t1, t3);
  }
  // Four bytes of each of 16 rows.
  static Int load_rows4(const uint8_t* const* row, size_t at) {
    alignas(64) int32_t v[16];
    for (int i = 0; i < 16; ++i) __builtin_memcpy(&v[i], row[i] + at, 4);
    return _mm512_set_epi32(v[15], v[14], v[13], v[12], v[11], v[10], v[9], v[8], v[7], v[6], v[5],
                            v[4], v[3], v[2], v[1], v[0]);
  }

  static Float load_f32(const void* p) { return _mm512_loadu_ps(p); }
  static Float load_f16(const void* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  }
  static Float load_bf16(const void* p) {
    const __m256i half = _mm256_loadu_si256(static_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
  }
  // The first n lanes of a, the others of b.
  static Float first_lanes(int n, Float a, Float b) {
    const unsigned mask = n >= 16 ? 0xFFFFu : n <= 0 ? 0u : (1u << n) - 1u;
    return _mm512_mask_blend_ps(static_cast<__mmask16>(mask), b, a);
  }
  // lane[l] += lane[l + 16], then + 8, 4, 2, 1.
  static float tree(const Float* v) {
    const Float all = _mm512_add_ps(v[0], v[1]);
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }

  // Sum of code * x over the values of one scale; codes are unsigned bytes.
  template <int kAdds, bool kSigned>
  struct Sum {
    Int acc;
    void start(Int from) { acc = from; }
    void step([[maybe_unused]] int k, Int code, Int x) { acc = _mm512_dpbusd_epi32(acc, code, x); }
    Int finish() { return acc; }
  };
};
