// Eight 32-bit lanes. Lane r belongs to weight row r of a half tile.
struct Vec {
  using Int = __m256i;
  using Float = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kProductVectors = 1, kProductRows = 4;  // dot_gemm.inl
  // Codes of eight bits stay signed: vpmaddubsw would saturate on them.
  static constexpr bool kSigned8 = true;

  STRATA_INLINE static Int zero() { return _mm256_setzero_si256(); }
  STRATA_INLINE static Int all8(int x) { return _mm256_set1_epi8(static_cast<char>(x)); }
  STRATA_INLINE static Int all16(int x) { return _mm256_set1_epi16(static_cast<short>(x)); }
  STRATA_INLINE static Int all32(int x) { return _mm256_set1_epi32(x); }
  // Four bytes at any address, in every lane.
  STRATA_INLINE static Int broadcast4(const void* p) {
    int32_t v;
    __builtin_memcpy(&v, p, 4);
    return all32(v);
  }
  STRATA_INLINE static Int load(const void* p) {
    return _mm256_load_si256(static_cast<const __m256i*>(p));
  }
  STRATA_INLINE static void store(void* p, Int x) {
    _mm256_store_si256(static_cast<__m256i*>(p), x);
  }
  STRATA_INLINE static Int bit_and(Int a, Int b) { return _mm256_and_si256(a, b); }
  STRATA_INLINE static Int bit_or(Int a, Int b) { return _mm256_or_si256(a, b); }
  STRATA_INLINE static Int bit_xor(Int a, Int b) { return _mm256_xor_si256(a, b); }
  template <int n>
  STRATA_INLINE static Int shift_right(Int a) {
    return n == 0 ? a : _mm256_srli_epi32(a, n);
  }
  template <int n>
  STRATA_INLINE static Int shift_left(Int a) {
    return n == 0 ? a : _mm256_slli_epi32(a, n);
  }
  STRATA_INLINE static Int sign_byte(Int a) {
    return _mm256_srai_epi32(_mm256_slli_epi32(a, 24), 24);
  }
  STRATA_INLINE static Int add32(Int a, Int b) { return _mm256_add_epi32(a, b); }
  STRATA_INLINE static Int sub32(Int a, Int b) { return _mm256_sub_epi32(a, b); }
  STRATA_INLINE static Int mul32(Int a, Int b) { return _mm256_mullo_epi32(a, b); }
  STRATA_INLINE static Int add8(Int a, Int b) { return _mm256_add_epi8(a, b); }
  // 0xFF in each byte where a has all bits of b.
  STRATA_INLINE static Int has_bits8(Int a, Int b) {
    return _mm256_cmpeq_epi8(_mm256_and_si256(a, b), b);
  }
  // Each byte of index (0..15) replaced by the entry of a 16-byte table.
  STRATA_INLINE static Int table16(const void* table) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(table)));
  }
  STRATA_INLINE static Int look_up(Int table, Int index) {
    return _mm256_shuffle_epi8(table, index);
  }
  // The i-th byte of each lane in all four bytes of the lane.
  template <int i>
  STRATA_INLINE static Int spread_byte(Int a) {
    const __m128i lane = _mm_add_epi8(
        _mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12), _mm_set1_epi8(i));
    return _mm256_shuffle_epi8(a, _mm256_broadcastsi128_si256(lane));
  }
  // acc + a.even * b.even + a.odd * b.odd of the two 16-bit halves of each lane.
  STRATA_INLINE static Int add_pairs(Int acc, Int a, Int b) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(a, b));
  }

  STRATA_INLINE static Float to_float(Int a) { return _mm256_cvtepi32_ps(a); }
  STRATA_INLINE static Float load_float(const float* p) { return _mm256_load_ps(p); }
  STRATA_INLINE static void store_float(float* p, Float x) { _mm256_store_ps(p, x); }
  STRATA_INLINE static void store_float_anywhere(float* p, Float x) { _mm256_storeu_ps(p, x); }
  STRATA_INLINE static Float all_float(float x) { return _mm256_set1_ps(x); }
  STRATA_INLINE static Float zero_float() { return _mm256_setzero_ps(); }
  STRATA_INLINE static Float mul(Float a, Float b) { return _mm256_mul_ps(a, b); }
  STRATA_INLINE static Float add(Float a, Float b) { return _mm256_add_ps(a, b); }
  STRATA_INLINE static Float fma(Float a, Float b, Float c) { return _mm256_fmadd_ps(a, b, c); }
  STRATA_INLINE static Float fnma(Float a, Float b, Float c) { return _mm256_fnmadd_ps(a, b, c); }
  STRATA_INLINE static Float load_half(const void* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  }

  STRATA_INLINE static __m128i load16(const uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  // Asks for the next lines.
  STRATA_INLINE static void prefetch(const RowsAt& rows, int loads) {
#pragma GCC unroll 32
    for (int i = 0; i < loads * rows.a_load; ++i) {
      if (rows.asked >= rows.n_ahead) return;
      const int row = rows.asked % kLanes;
      const int line = rows.asked / kLanes;
      _mm_prefetch(rows.ahead + static_cast<size_t>(row) * rows.stride + 64 * line, _MM_HINT_T0);
      ++rows.asked;
    }
  }
  // 16 bytes of each of 8 rows: out[k] holds bytes 4k..4k+3, one row a lane.
  STRATA_INLINE static void turn_rows16(const uint8_t* p0, size_t s, Int out[4]) {
    const uint8_t* p1 = p0 + 4 * s;
    Int z[4];
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
      z[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(load16(p0 + i * s)), load16(p1 + i * s),
                                     1);
    }
    const Int t0 = _mm256_unpacklo_epi32(z[0], z[1]);
    const Int t1 = _mm256_unpackhi_epi32(z[0], z[1]);
    const Int t2 = _mm256_unpacklo_epi32(z[2], z[3]);
    const Int t3 = _mm256_unpackhi_epi32(z[2], z[3]);
    out[0] = _mm256_unpacklo_epi64(t0, t2);
    out[1] = _mm256_unpackhi_epi64(t0, t2);
    out[2] = _mm256_unpacklo_epi64(t1, t3);
    out[3] = _mm256_unpackhi_epi64(t1, t3);
  }
  STRATA_INLINE static void turn_rows32(const uint8_t* p, size_t s, Int out[8]) {
    turn_rows16(p, s, out);
    turn_rows16(p + 16, s, out + 4);
  }
  // The same from offset `at` of a block, while the share of the next rows is asked for.
  STRATA_INLINE static void load_rows16(const RowsAt& rows, int at, Int out[4]) {
    prefetch(rows, 1);
    turn_rows16(rows.base + at, rows.stride, out);
  }
  STRATA_INLINE static void load_rows32(const RowsAt& rows, int at, Int out[8]) {
    prefetch(rows, 2);
    turn_rows32(rows.base + at, rows.stride, out);
  }

  // Stays where it is written, between the products: compilers gather _mm_prefetch in bursts.
  STRATA_INLINE static void prefetch(const uint8_t* p) { asm volatile("prefetcht0 %0" ::"m"(*p)); }
  STRATA_INLINE static Int load_word(const TileAt& tile, int at) {
    const uint8_t* p = tile.words + 16 * at;
    prefetch(p + kTileAhead);
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  STRATA_INLINE static void load_rows16(const TileAt& tile, int at, Int out[4]) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) out[k] = load_word(tile, at + 4 * k);
  }
  STRATA_INLINE static void load_rows32(const TileAt& tile, int at, Int out[8]) {
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) out[k] = load_word(tile, at + 4 * k);
  }
  // Bytes 2 and 3 of a block that starts with two f16, and bytes 4 to 7.
  STRATA_INLINE static void load_head(const RowsAt& rows, Int& half, Int& word) {
    Int v[4];
    load_rows16(rows, 0, v);
    half = shift_right<16>(v[0]);
    word = v[1];
  }
  STRATA_INLINE static void load_head(const TileAt& tile, Int& half, Int& word) {
    half = _mm256_cvtepu16_epi32(load16(tile.last_half));
    word = load_word(tile, 4);
  }

  STRATA_INLINE static Float load_f32(const void* p) {
    return _mm256_loadu_ps(static_cast<const float*>(p));
  }
  STRATA_INLINE static Float load_bf16(const void* p) {
    const __m128i half = _mm_loadu_si128(static_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
  }
  // The first n lanes of a, the others of b.
  STRATA_INLINE static Float first_lanes(int n, Float a, Float b) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(_mm256_cmpgt_epi32(all32(n), lane)));
  }
  // lane[l] += lane[l + 16], then + 8, 4, 2, 1.
  STRATA_INLINE static float tree(const Float* v) {
    const __m256 eight = _mm256_add_ps(_mm256_add_ps(v[0], v[2]), _mm256_add_ps(v[1], v[3]));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }

  // Sum of code * x over the values of one scale. kAdds products of vpmaddubsw fit 16 bits.
  template <int kAdds, bool kSigned>
  struct Sum {
    Int acc, narrow;
    STRATA_INLINE void start(Int from) { acc = from; }
    // Adds code times the four values of x at p.
    STRATA_INLINE void step(int k, Int code, const int8_t* p) { step(k, code, broadcast4(p)); }
    STRATA_INLINE void step([[maybe_unused]] int k, Int code, Int x) {
      // |code| <= 128 and |x| <= 127, so a pair is at most 32512.
      const Int pairs = kSigned
                            ? _mm256_maddubs_epi16(_mm256_abs_epi8(code), _mm256_sign_epi8(x, code))
                            : _mm256_maddubs_epi16(code, x);
      narrow = k % kAdds == 0 ? pairs : _mm256_add_epi16(narrow, pairs);
      if (k % kAdds == kAdds - 1) acc = add32(acc, _mm256_madd_epi16(narrow, all16(1)));
    }
    STRATA_INLINE Int finish() { return acc; }
  };
};
