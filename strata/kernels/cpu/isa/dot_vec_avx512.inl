// Sixteen 32-bit lanes. Lane r belongs to weight row r of a tile.
struct Vec {
  using Int = __m512i;
  using Float = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kProductVectors = 2, kProductRows = 4;  // dot_gemm.inl
  // Codes of eight bits are kept with their top bit flipped, so that vpdpbusd can take them.
  static constexpr bool kSigned8 = false;

  STRATA_INLINE static Int zero() { return _mm512_setzero_si512(); }
  STRATA_INLINE static Int all8(int x) { return _mm512_set1_epi8(static_cast<char>(x)); }
  STRATA_INLINE static Int all16(int x) { return _mm512_set1_epi16(static_cast<short>(x)); }
  STRATA_INLINE static Int all32(int x) { return _mm512_set1_epi32(x); }
  // Four bytes at any address, in every lane.
  STRATA_INLINE static Int broadcast4(const void* p) {
    int32_t v;
    __builtin_memcpy(&v, p, 4);
    return all32(v);
  }
  STRATA_INLINE static Int load(const void* p) { return _mm512_load_si512(p); }
  STRATA_INLINE static void store(void* p, Int x) { _mm512_store_si512(p, x); }
  STRATA_INLINE static Int bit_and(Int a, Int b) { return _mm512_and_si512(a, b); }
  STRATA_INLINE static Int bit_or(Int a, Int b) { return _mm512_or_si512(a, b); }
  STRATA_INLINE static Int bit_xor(Int a, Int b) { return _mm512_xor_si512(a, b); }
  template <int n>
  STRATA_INLINE static Int shift_right(Int a) {
    return n == 0 ? a : _mm512_srli_epi32(a, n);
  }
  template <int n>
  STRATA_INLINE static Int shift_left(Int a) {
    return n == 0 ? a : _mm512_slli_epi32(a, n);
  }
  STRATA_INLINE static Int sign_byte(Int a) {
    return _mm512_srai_epi32(_mm512_slli_epi32(a, 24), 24);
  }
  STRATA_INLINE static Int add32(Int a, Int b) { return _mm512_add_epi32(a, b); }
  STRATA_INLINE static Int sub32(Int a, Int b) { return _mm512_sub_epi32(a, b); }
  STRATA_INLINE static Int mul32(Int a, Int b) { return _mm512_mullo_epi32(a, b); }
  STRATA_INLINE static Int add8(Int a, Int b) { return _mm512_add_epi8(a, b); }
  // 0xFF in each byte where a has all bits of b.
  STRATA_INLINE static Int has_bits8(Int a, Int b) {
    return _mm512_movm_epi8(_mm512_cmpeq_epi8_mask(_mm512_and_si512(a, b), b));
  }
  // Each byte of index (0..15) replaced by the entry of a 16-byte table.
  STRATA_INLINE static Int table16(const void* table) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(static_cast<const __m128i*>(table)));
  }
  STRATA_INLINE static Int look_up(Int table, Int index) {
    return _mm512_shuffle_epi8(table, index);
  }
  // The i-th byte of each lane in all four bytes of the lane.
  template <int i>
  STRATA_INLINE static Int spread_byte(Int a) {
    const __m128i lane = _mm_add_epi8(
        _mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12), _mm_set1_epi8(i));
    return _mm512_shuffle_epi8(a, _mm512_broadcast_i32x4(lane));
  }
  // acc + a.even * b.even + a.odd * b.odd of the two 16-bit halves of each lane.
  STRATA_INLINE static Int add_pairs(Int acc, Int a, Int b) {
    return _mm512_dpwssd_epi32(acc, a, b);
  }

  STRATA_INLINE static Float to_float(Int a) { return _mm512_cvtepi32_ps(a); }
  STRATA_INLINE static Float load_float(const float* p) { return _mm512_load_ps(p); }
  STRATA_INLINE static void store_float(float* p, Float x) { _mm512_store_ps(p, x); }
  STRATA_INLINE static void store_float_anywhere(float* p, Float x) { _mm512_storeu_ps(p, x); }
  STRATA_INLINE static Float all_float(float x) { return _mm512_set1_ps(x); }
  STRATA_INLINE static Float zero_float() { return _mm512_setzero_ps(); }
  STRATA_INLINE static Float mul(Float a, Float b) { return _mm512_mul_ps(a, b); }
  STRATA_INLINE static Float add(Float a, Float b) { return _mm512_add_ps(a, b); }
  STRATA_INLINE static Float fma(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
  STRATA_INLINE static Float fnma(Float a, Float b, Float c) { return _mm512_fnmadd_ps(a, b, c); }
  STRATA_INLINE static Float load_half(const void* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  }

  STRATA_INLINE static __m128i load16(const uint8_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  STRATA_INLINE static __m256i load32(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  // Four by four words inside each 128 bits: out[k] has word k of each of in[0..3].
  STRATA_INLINE static void turn4(const Int in[4], Int out[4]) {
    const Int t0 = _mm512_unpacklo_epi32(in[0], in[1]);
    const Int t1 = _mm512_unpackhi_epi32(in[0], in[1]);
    const Int t2 = _mm512_unpacklo_epi32(in[2], in[3]);
    const Int t3 = _mm512_unpackhi_epi32(in[2], in[3]);
    out[0] = _mm512_unpacklo_epi64(t0, t2);
    out[1] = _mm512_unpackhi_epi64(t0, t2);
    out[2] = _mm512_unpacklo_epi64(t1, t3);
    out[3] = _mm512_unpackhi_epi64(t1, t3);
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
  // 16 bytes of each of 16 rows: out[k] holds bytes 4k..4k+3, one row a lane.
  STRATA_INLINE static void turn_rows16(const uint8_t* p0, size_t s, Int out[4]) {
    const uint8_t* p1 = p0 + 4 * s;
    const uint8_t* p2 = p0 + 8 * s;
    const uint8_t* p3 = p2 + 4 * s;
    Int z[4];
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
      z[i] = _mm512_castsi128_si512(load16(p0 + i * s));
      z[i] = _mm512_inserti32x4(z[i], load16(p1 + i * s), 1);
      z[i] = _mm512_inserti32x4(z[i], load16(p2 + i * s), 2);
      z[i] = _mm512_inserti32x4(z[i], load16(p3 + i * s), 3);
    }
    turn4(z, out);
  }
  // 32 bytes of each row. Half the loads of two load_rows16.
  STRATA_INLINE static void turn_rows32(const uint8_t* p0, size_t s, Int out[8]) {
    const uint8_t* p1 = p0 + 4 * s;
    const uint8_t* p2 = p0 + 8 * s;
    const uint8_t* p3 = p2 + 4 * s;
    Int a[4], b[4], low[4], high[4];
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
      a[i] = _mm512_inserti64x4(_mm512_castsi256_si512(load32(p0 + i * s)), load32(p1 + i * s), 1);
      b[i] = _mm512_inserti64x4(_mm512_castsi256_si512(load32(p2 + i * s)), load32(p3 + i * s), 1);
    }
    turn4(a, low);   // 128 bits each: rows 0-3 word k, the same word k + 4, rows 4-7 likewise
    turn4(b, high);  // rows 8-11, 12-15
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      out[k] = _mm512_shuffle_i32x4(low[k], high[k], 0x88);
      out[k + 4] = _mm512_shuffle_i32x4(low[k], high[k], 0xDD);
    }
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
    return _mm512_loadu_si512(p);
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
    half = _mm512_cvtepu16_epi32(load32(tile.last_half));
    word = load_word(tile, 4);
  }

  STRATA_INLINE static Float load_f32(const void* p) { return _mm512_loadu_ps(p); }
  STRATA_INLINE static Float load_bf16(const void* p) {
    const __m256i half = _mm256_loadu_si256(static_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
  }
  // The first n lanes of a, the others of b.
  STRATA_INLINE static Float first_lanes(int n, Float a, Float b) {
    const unsigned mask = n >= 16 ? 0xFFFFu : n <= 0 ? 0u : (1u << n) - 1u;
    return _mm512_mask_blend_ps(static_cast<__mmask16>(mask), b, a);
  }
  // lane[l] += lane[l + 16], then + 8, 4, 2, 1.
  STRATA_INLINE static float tree(const Float* v) {
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
    STRATA_INLINE void start(Int from) { acc = from; }
    // Adds code times the four values of x at p. The instruction takes p's broadcast as an operand,
    // which compilers do not find by themselves; decoding, not adding, would be the bound.
    STRATA_INLINE void step([[maybe_unused]] int k, Int code, const int8_t* p) {
      asm volatile(
          "vpdpbusd %1%{1to16%}, %2, %0"
          : "+v"(acc)
          : "m"(*reinterpret_cast<const int32_t __attribute__((may_alias, aligned(1)))*>(p)),
            "v"(code));
    }
    STRATA_INLINE void step([[maybe_unused]] int k, Int code, Int x) {
      acc = _mm512_dpbusd_epi32(acc, code, x);
    }
    STRATA_INLINE Int finish() { return acc; }
  };
};
