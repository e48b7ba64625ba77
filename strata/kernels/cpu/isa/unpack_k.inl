// The K types, and IQ4_XS: 256 values. quant/k_quants.cpp has the layouts.

// Four unsigned bytes a lane to four scales.
STRATA_INLINE void put_scales(Vec::Int v, int first, int bias, auto& out) {
  const Vec::Int mask = Vec::all32(255);
  const Vec::Int less = Vec::all32(bias);
  out.put_scale(first, Vec::sub32(Vec::bit_and(v, mask), less));
  out.put_scale(first + 1, Vec::sub32(Vec::bit_and(Vec::shift_right<8>(v), mask), less));
  out.put_scale(first + 2, Vec::sub32(Vec::bit_and(Vec::shift_right<16>(v), mask), less));
  out.put_scale(first + 3, Vec::sub32(Vec::shift_right<24>(v), less));
}

// Four bytes a lane to the mins of four groups of 32: each serves two groups of 16.
STRATA_INLINE void put_mins32(Vec::Int v, int first, auto& out) {
  const Vec::Int mask = Vec::all32(255);
  const auto twice = [](Vec::Int m) { return Vec::bit_or(m, Vec::shift_left<16>(m)); };
  out.put_min(first, twice(Vec::bit_and(v, mask)));
  out.put_min(first + 1, twice(Vec::bit_and(Vec::shift_right<8>(v), mask)));
  out.put_min(first + 2, twice(Vec::bit_and(Vec::shift_right<16>(v), mask)));
  out.put_min(first + 3, twice(Vec::shift_right<24>(v)));
}

// The 12 bytes of scales and mins of Q4_K and Q5_K.
STRATA_INLINE void put_scales_and_mins(const auto& rows, int at, auto& out) {
  Vec::Int s[4];
  Vec::load_rows16(rows, at, s);
  const Vec::Int six = Vec::all8(63);
  const Vec::Int four = Vec::all8(15);
  const Vec::Int top = Vec::all8(0x30);
  put_scales(Vec::bit_and(s[0], six), 0, 0, out);
  put_scales(Vec::bit_or(Vec::bit_and(s[2], four), Vec::bit_and(Vec::shift_right<2>(s[0]), top)), 4,
             0, out);
  put_mins32(Vec::bit_and(s[1], six), 0, out);
  put_mins32(Vec::bit_or(Vec::bit_and(Vec::shift_right<4>(s[2]), four),
                         Vec::bit_and(Vec::shift_right<2>(s[1]), top)),
             4, out);
}

struct Q4_K : Layout<144, 256, 0, 2> {
  using Form = Form256<32, true, 0, 8>;
  static constexpr int kLoads = 9;
  STRATA_INLINE static void unpack(const auto& rows, auto& out) {
    put_scales_and_mins(rows, 4, out);
    const Vec::Int mask = Vec::all8(15);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      Vec::Int v[8];
      Vec::load_rows32(rows, 16 + 32 * i, v);
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) out.put_code(16 * i + k, Vec::bit_and(v[k], mask));
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) {
        out.put_code(16 * i + 8 + k, Vec::bit_and(Vec::shift_right<4>(v[k]), mask));
      }
    }
  }
};

// Moves bit `from` of each byte to bit `to`; the other bits are to be masked away.
template <int from, int to>
STRATA_INLINE Vec::Int move_bit(Vec::Int x) {
  if constexpr (from < to) {
    return Vec::shift_left<to - from>(x);
  } else {
    return Vec::shift_right<from - to>(x);
  }
}

struct Q5_K : Layout<176, 256, 0, 2> {
  using Form = Form256<32, true, 0, 4>;
  static constexpr int kLoads = 11;
  template <int i>
  STRATA_INLINE static void put(const auto& rows, const Vec::Int high[8], auto& out) {
    const Vec::Int mask = Vec::all8(15);
    const Vec::Int fifth = Vec::all8(16);
    Vec::Int v[8];
    Vec::load_rows32(rows, 48 + 32 * i, v);
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) {
      const Vec::Int bit = Vec::bit_and(move_bit<2 * i, 4>(high[k]), fifth);
      out.put_code(16 * i + k, Vec::bit_or(Vec::bit_and(v[k], mask), bit));
    }
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) {
      const Vec::Int bit = Vec::bit_and(move_bit<2 * i + 1, 4>(high[k]), fifth);
      out.put_code(16 * i + 8 + k, Vec::bit_or(Vec::bit_and(Vec::shift_right<4>(v[k]), mask), bit));
    }
  }
  STRATA_INLINE static void unpack(const auto& rows, auto& out) {
    put_scales_and_mins(rows, 4, out);
    Vec::Int high[8];
    Vec::load_rows32(rows, 16, high);
    put<0>(rows, high, out);
    put<1>(rows, high, out);
    put<2>(rows, high, out);
    put<3>(rows, high, out);
  }
};

struct Q6_K : Layout<210, 256, 208> {
  using Form = Form256<16, false, 32, 2>;
  static constexpr int kLoads = 13;
  STRATA_INLINE static void unpack(const auto& rows, auto& out) {
    Vec::Int s[4];
    Vec::load_rows16(rows, 192, s);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      out.put_scale(4 * i, Vec::sign_byte(s[i]));
      out.put_scale(4 * i + 1, Vec::sign_byte(Vec::shift_right<8>(s[i])));
      out.put_scale(4 * i + 2, Vec::sign_byte(Vec::shift_right<16>(s[i])));
      out.put_scale(4 * i + 3, Vec::sign_byte(Vec::shift_right<24>(s[i])));
    }
    const Vec::Int mask = Vec::all8(15);
    const Vec::Int top = Vec::all8(0x30);
    const auto join = [&](Vec::Int nibble, Vec::Int pair) {
      return Vec::bit_or(Vec::bit_and(nibble, mask), Vec::bit_and(pair, top));
    };
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {  // 16 of the 32 bytes of a half that share their shifts
      const int half = i / 2;
      const int byte = 16 * (i % 2);
      const int first = 32 * half + 4 * (i % 2);
      Vec::Int low[4], low1[4], high[4];
      Vec::load_rows16(rows, 64 * half + byte, low);
      Vec::load_rows16(rows, 64 * half + 32 + byte, low1);
      Vec::load_rows16(rows, 128 + 32 * half + byte, high);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        out.put_code(first + k, join(low[k], Vec::shift_left<4>(high[k])));
      }
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        out.put_code(first + 8 + k, join(low1[k], Vec::shift_left<2>(high[k])));
      }
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        out.put_code(first + 16 + k, join(Vec::shift_right<4>(low[k]), high[k]));
      }
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        out.put_code(first + 24 + k,
                     join(Vec::shift_right<4>(low1[k]), Vec::shift_right<2>(high[k])));
      }
    }
  }
};

struct Q2_K : Layout<84, 256, 80, 82> {
  using Form = Form256<16, true, 0, 8>;
  static constexpr int kLoads = 5;
  template <int quarter>
  STRATA_INLINE static void put(const Vec::Int v[8], int first, auto& out) {
    const Vec::Int two = Vec::all8(3);
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) {
      out.put_code(first + 8 * quarter + k, Vec::bit_and(Vec::shift_right<2 * quarter>(v[k]), two));
    }
  }
  STRATA_INLINE static void unpack(const auto& rows, auto& out) {
    Vec::Int s[4];
    Vec::load_rows16(rows, 0, s);
    const Vec::Int nibble = Vec::all8(15);
    const Vec::Int low = Vec::all32(0xFF);
    const Vec::Int high = Vec::all32(0xFF0000);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      put_scales(Vec::bit_and(s[i], nibble), 4 * i, 0, out);
      const Vec::Int m = Vec::bit_and(Vec::shift_right<4>(s[i]), nibble);
      out.put_min(2 * i,
                  Vec::bit_or(Vec::bit_and(m, low), Vec::bit_and(Vec::shift_left<8>(m), high)));
      out.put_min(2 * i + 1, Vec::bit_or(Vec::bit_and(Vec::shift_right<16>(m), low),
                                         Vec::bit_and(Vec::shift_right<8>(m), high)));
    }
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      Vec::Int v[8];
      Vec::load_rows32(rows, 16 + 32 * half, v);
      put<0>(v, 32 * half, out);
      put<1>(v, 32 * half, out);
      put<2>(v, 32 * half, out);
      put<3>(v, 32 * half, out);
    }
  }
};

struct Q3_K : Layout<110, 256, 108> {
  using Form = Form256<16, false, 4, 8>;
  static constexpr int kLoads = 7;
  template <int half, int quarter>
  STRATA_INLINE static void put(const Vec::Int v[8], const Vec::Int mask[8], auto& out) {
    const Vec::Int two = Vec::all8(3);
    const Vec::Int third = Vec::all8(4);
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) {
      const Vec::Int bit = Vec::bit_and(move_bit<4 * half + quarter, 2>(mask[k]), third);
      out.put_code(32 * half + 8 * quarter + k,
                   Vec::bit_or(Vec::bit_and(Vec::shift_right<2 * quarter>(v[k]), two), bit));
    }
  }
  template <int half>
  STRATA_INLINE static void put_half(const auto& rows, const Vec::Int mask[8], auto& out) {
    Vec::Int v[8];
    Vec::load_rows32(rows, 32 + 32 * half, v);
    put<half, 0>(v, mask, out);
    put<half, 1>(v, mask, out);
    put<half, 2>(v, mask, out);
    put<half, 3>(v, mask, out);
  }
  STRATA_INLINE static void unpack(const auto& rows, auto& out) {
    Vec::Int s[4];  // from four bytes before the scales, so that the load ends inside the block
    Vec::load_rows16(rows, 92, s);
    const Vec::Int nibble = Vec::all8(15);
    const Vec::Int top = Vec::all8(0x30);
    const auto join = [&](Vec::Int low, Vec::Int high) {
      return Vec::bit_or(Vec::bit_and(low, nibble), Vec::bit_and(high, top));
    };
    put_scales(join(s[1], Vec::shift_left<4>(s[3])), 0, 32, out);
    put_scales(join(s[2], Vec::shift_left<2>(s[3])), 4, 32, out);
    put_scales(join(Vec::shift_right<4>(s[1]), s[3]), 8, 32, out);
    put_scales(join(Vec::shift_right<4>(s[2]), Vec::shift_right<2>(s[3])), 12, 32, out);
    Vec::Int mask[8];
    Vec::load_rows32(rows, 0, mask);
    put_half<0>(rows, mask, out);
    put_half<1>(rows, mask, out);
  }
};

struct IQ4_XS : Layout<136, 256, 0> {
  using Form = TermForm<256, 32, true, false, kOffset8, 1, Vec::kSigned8>;
  static constexpr int kLoads = 9;
  static constexpr int kHalves = 2;  // d and the 16 bits beside it
  template <int g>
  STRATA_INLINE static void put_group(const auto& rows, Vec::Int low, Vec::Int high, auto& out) {
    const Vec::Int two = Vec::bit_and(Vec::shift_right<2 * g>(high), Vec::all32(3));
    const Vec::Int four = Vec::bit_and(Vec::shift_right<4 * g>(low), Vec::all32(15));
    out.put_scale(g, Vec::sub32(Vec::bit_or(four, Vec::shift_left<4>(two)), Vec::all32(32)));
    put_non_linear(rows, 8 + 16 * g, 8 * g, out);
  }
  STRATA_INLINE static void unpack(const auto& rows, auto& out) {
    Vec::Int high, low;
    Vec::load_head(rows, high, low);
    put_group<0>(rows, low, high, out);
    put_group<1>(rows, low, high, out);
    put_group<2>(rows, low, high, out);
    put_group<3>(rows, low, high, out);
    put_group<4>(rows, low, high, out);
    put_group<5>(rows, low, high, out);
    put_group<6>(rows, low, high, out);
    put_group<7>(rows, low, high, out);
  }
};
