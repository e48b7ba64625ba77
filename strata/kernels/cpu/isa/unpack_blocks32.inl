// Types of 32-value blocks, and Q2_0. quant/blocks32.cpp and quant/low_bits.cpp have the layouts.

constexpr int kOffset8 = Vec::kSigned8 ? 0 : 128;
template <int offset, int adds>
using Form32 = TermForm<32, 32, false, false, offset, adds, false>;
using Form32Min = TermForm<32, 32, false, true, 0, 4, false>;
using Form32Signed = TermForm<32, 32, false, false, kOffset8, 1, Vec::kSigned8>;

// The non-linear list of IQ4_NL and IQ4_XS, as codes of eight bits are kept.
alignas(16) constexpr int8_t kNonLinearSigned[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                     1,    13,   25,  38,  53,  69,  89,  113};
alignas(16) constexpr uint8_t kNonLinearOffset[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                                      129, 141, 153, 166, 181, 197, 217, 241};
STRATA_INLINE Vec::Int non_linear_table() {
  return Vec::table16(Vec::kSigned8 ? static_cast<const void*>(kNonLinearSigned)
                                    : static_cast<const void*>(kNonLinearOffset));
}
STRATA_INLINE Vec::Int flip8(Vec::Int x) {
  return Vec::kSigned8 ? x : Vec::bit_xor(x, Vec::all8(0x80));
}

// 16 bytes a row: nibbles of 32 values, the low ones first.
STRATA_INLINE void split_nibbles(const auto& rows, int at, Vec::Int out[8]) {
  Vec::Int v[4];
  Vec::load_rows16(rows, at, v);
  const Vec::Int mask = Vec::all8(15);
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    out[k] = Vec::bit_and(v[k], mask);
    out[k + 4] = Vec::bit_and(Vec::shift_right<4>(v[k]), mask);
  }
}

STRATA_INLINE void put_nibbles(const auto& rows, int at, auto& out) {
  Vec::Int v[8];
  split_nibbles(rows, at, v);
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) out.put_code(k, v[k]);
}

STRATA_INLINE void put_non_linear(const auto& rows, int at, int first, auto& out) {
  Vec::Int v[8];
  split_nibbles(rows, at, v);
  const Vec::Int table = non_linear_table();
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) out.put_code(first + k, Vec::look_up(table, v[k]));
}

// Nibbles with a fifth bit: bit j of the four bytes at `high` belongs to value j.
STRATA_INLINE void put_nibbles5(const auto& rows, int high, int at, auto& out) {
  Vec::Int v[8], bits[4];
  split_nibbles(rows, at, v);
  Vec::load_rows16(rows, high, bits);
  const Vec::Int low = Vec::all32(0x08040201);
  const Vec::Int up = Vec::all32(static_cast<int>(0x80402010u));
  const Vec::Int fifth = Vec::all8(16);
  const Vec::Int byte[4] = {Vec::spread_byte<0>(bits[0]), Vec::spread_byte<1>(bits[0]),
                            Vec::spread_byte<2>(bits[0]), Vec::spread_byte<3>(bits[0])};
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) {
    const Vec::Int set = Vec::has_bits8(byte[k / 2], k % 2 == 0 ? low : up);
    out.put_code(k, Vec::bit_or(v[k], Vec::bit_and(set, fifth)));
  }
}

struct Q4_0 : Layout<18, 32, 0> {
  using Form = Form32<8, 8>;
  static constexpr int kLoads = 1;
  STRATA_INLINE static void unpack(const auto& rows, auto& out) { put_nibbles(rows, 2, out); }
};

// "+ m" is a min of 1 with dmin = -m.
struct Q4_1 : Layout<20, 32, 0, 2> {
  using Form = Form32Min;
  static constexpr int kLoads = 1;
  static constexpr float kDminFactor = -1.0f;
  STRATA_INLINE static void unpack(const auto& rows, auto& out) { put_nibbles(rows, 4, out); }
};

struct Q5_0 : Layout<22, 32, 0> {
  using Form = Form32<16, 4>;
  static constexpr int kLoads = 2;
  STRATA_INLINE static void unpack(const auto& rows, auto& out) { put_nibbles5(rows, 2, 6, out); }
};

struct Q5_1 : Layout<24, 32, 0, 2> {
  using Form = Form32Min;
  static constexpr int kLoads = 2;
  static constexpr float kDminFactor = -1.0f;
  STRATA_INLINE static void unpack(const auto& rows, auto& out) { put_nibbles5(rows, 4, 8, out); }
};

struct Q8_0 : Layout<34, 32, 0> {
  using Form = Form32Signed;
  static constexpr int kLoads = 2;
  STRATA_INLINE static void unpack(const auto& rows, auto& out) {
    Vec::Int v[8];
    Vec::load_rows32(rows, 2, v);
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) out.put_code(k, flip8(v[k]));
  }
};

struct IQ4_NL : Layout<18, 32, 0> {
  using Form = Form32Signed;
  static constexpr int kLoads = 1;
  STRATA_INLINE static void unpack(const auto& rows, auto& out) { put_non_linear(rows, 2, 0, out); }
};

// Byte j of a word has columns 4j to 4j + 3 of its 16: two bits of each byte are four columns that
// lie together in crossed activations.
struct Q2_0 : Layout<18, 64, 0> {
  using Form = Form32<1, 8>;
  static constexpr int kLoads = 1;
  static constexpr bool kCrossed = true;
  STRATA_INLINE static void unpack(const auto& rows, auto& out) {
    Vec::Int v[4];
    Vec::load_rows16(rows, 2, v);
    const Vec::Int two = Vec::all8(3);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      out.put_code(4 * k, Vec::bit_and(v[k], two));
      out.put_code(4 * k + 1, Vec::bit_and(Vec::shift_right<2>(v[k]), two));
      out.put_code(4 * k + 2, Vec::bit_and(Vec::shift_right<4>(v[k]), two));
      out.put_code(4 * k + 3, Vec::bit_and(Vec::shift_right<6>(v[k]), two));
    }
  }
};
