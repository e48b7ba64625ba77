// The K types, and IQ4_XS: 256 values. quant/k_quants.cpp has the layouts.

template <int group, bool min, int offset, int adds>
using Form256 = TermForm<256, group, true, min, offset, adds, false>;

inline void load_rows32(const uint8_t* const* row, size_t at, Vec::Int out[8]) {
  Vec::load_rows16(row, at, out);
  Vec::load_rows16(row, at + 16, out + 4);
}

// Four unsigned bytes a lane to four scales.
inline void put_scales(Vec::Int v, int first, int bias, const TileAt& out) {
  const Vec::Int mask = Vec::all32(255);
  const Vec::Int less = Vec::all32(bias);
  out.put_scale(first, Vec::sub32(Vec::bit_and(v, mask), less));
  out.put_scale(first + 1, Vec::sub32(Vec::bit_and(Vec::shift_right<8>(v), mask), less));
  out.put_scale(first + 2, Vec::sub32(Vec::bit_and(Vec::shift_right<16>(v), mask), less));
  out.put_scale(first + 3, Vec::sub32(Vec::shift_right<24>(v), less));
}

// Four bytes a lane to the mins of four groups of 32: each serves two groups of 16.
inline void put_mins32(Vec::Int v, int first, const TileAt& out) {
  const Vec::Int mask = Vec::all32(255);
  const auto put = [&](int g, Vec::Int m) {
    out.put_min(g, Vec::bit_or(m, Vec::shift_left<16>(m)));
  };
  put(first, Vec::bit_and(v, mask));
  put(first + 1, Vec::bit_and(Vec::shift_right<8>(v), mask));
  put(first + 2, Vec::bit_and(Vec::shift_right<16>(v), mask));
  put(first + 3, Vec::shift_right<24>(v));
}

// The 12 bytes of scales and mins of Q4_K and Q5_K.
inline void put_scales_and_mins(const uint8_t* const* row, size_t at, const TileAt& out) {
  Vec::Int s[4];
  Vec::load_rows16(row, at, s);
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
  static void unpack(const uint8_t* const* row, size_t at, const TileAt& out) {
    put_scales_and_mins(row, at + 4, out);
    const Vec::Int mask = Vec::all8(15);
    for (int i = 0; i < 8; ++i) {
      Vec::Int v[4];
      Vec::load_rows16(row, at + 16 + 16 * static_cast<size_t>(i), v);
      const int first = 16 * (i / 2) + 4 * (i % 2);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        out.put_code(first + k, Vec::bit_and(v[k], mask));
        out.put_code(first + 8 + k, Vec::bit_and(Vec::shift_right<4>(v[k]), mask));
      }
    }
  }
};

struct Q5_K : Layout<176, 256, 0, 2> {
  using Form = Form256<32, true, 0, 4>;
  template <int two_groups>
  static void put(const uint8_t* const* row, size_t at, const Vec::Int high[8], const TileAt& out) {
    const Vec::Int mask = Vec::all8(15);
    const Vec::Int fifth = Vec::all8(16);
    Vec::Int v[8];
    load_rows32(row, at + 48 + 32 * static_cast<size_t>(two_groups), v);
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) {
      constexpr int bit = 2 * two_groups;
      const Vec::Int even = Vec::shift_right<(bit > 4 ? bit - 4 : 0)>(
          Vec::shift_left<(bit < 4 ? 4 - bit : 0)>(high[k]));
      const Vec::Int odd = Vec::shift_right<(bit > 3 ? bit - 3 : 0)>(
          Vec::shift_left<(bit < 3 ? 3 - bit : 0)>(high[k]));
      out.put_code(16 * two_groups + k,
                   Vec::bit_or(Vec::bit_and(v[k], mask), Vec::bit_and(even, fifth)));
      out.put_code(
          16 * two_groups + 8 + k,
          Vec::bit_or(Vec::bit_and(Vec::shift_right<4>(v[k]), mask), Vec::bit_and(odd, fifth)));
    }
  }
  static void unpack(const uint8_t* const* row, size_t at, const TileAt& out) {
    put_scales_and_mins(row, at + 4, out);
    Vec::Int high[8];
    load_rows32(row, at + 16, high);
    put<0>(row, at, high, out);
    put<1>(row, at, high, out);
    put<2>(row, at, high, out);
    put<3>(row, at, high, out);
  }
};

struct Q6_K : Layout<210, 256, 208> {
  using Form = Form256<16, false, 32, 2>;
  static void unpack(const uint8_t* const* row, size_t at, const TileAt& out) {
    Vec::Int s[4];
    Vec::load_rows16(row, at + 192, s);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      out.put_scale(4 * i, Vec::sign_byte(s[i]));
      out.put_scale(4 * i + 1, Vec::sign_byte(Vec::shift_right<8>(s[i])));
      out.put_scale(4 * i + 2, Vec::sign_byte(Vec::shift_right<16>(s[i])));
      out.put_scale(4 * i + 3, Vec::sign_byte(Vec::shift_right<24>(s[i])));
    }
    const Vec::Int mask = Vec::all8(15);
    const Vec::Int top = Vec::all8(0x30);
    for (int i = 0; i < 4; ++i) {  // 16 of the 32 bytes that share the shifts, in two halves
      const int half = i / 2;
      const size_t byte = 16 * static_cast<size_t>(i % 2);
      const int first = 32 * half + 4 * (i % 2);
      Vec::Int low[4], low1[4], high[4];
      Vec::load_rows16(row, at + 64 * static_cast<size_t>(half) + byte, low);
      Vec::load_rows16(row, at + 64 * static_cast<size_t>(half) + 32 + byte, low1);
      Vec::load_rows16(row, at + 128 + 32 * static_cast<size_t>(half) + byte, high);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const auto put = [&](int quarter, Vec::Int nibble, Vec::Int pair) {
          out.put_code(first + 8 * quarter + k,
                       Vec::bit_or(Vec::bit_and(nibble, mask), Vec::bit_and(pair, top)));
        };
        put(0, low[k], Vec::shift_left<4>(high[k]));
        put(1, low1[k], Vec::shift_left<2>(high[k]));
        put(2, Vec::shift_right<4>(low[k]), high[k]);
        put(3, Vec::shift_right<4>(low1[k]), Vec::shift_right<2>(high[k]));
      }
    }
  }
};

struct Q2_K : Layout<84, 256, 80, 82> {
  using Form = Form256<16, true, 0, 8>;
  static void unpack(const uint8_t* const* row, size_t at, const TileAt& out) {
    Vec::Int s[4];
    Vec::load_rows16(row, at, s);
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
    const Vec::Int two = Vec::all8(3);
    for (int half = 0; half < 2; ++half) {
      Vec::Int v[8];
      load_rows32(row, at + 16 + 32 * static_cast<size_t>(half), v);
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) {
        out.put_code(32 * half + k, Vec::bit_and(v[k], two));
        out.put_code(32 * half + 8 + k, Vec::bit_and(Vec::shift_right<2>(v[k]), two));
        out.put_code(32 * half + 16 + k, Vec::bit_and(Vec::shift_right<4>(v[k]), two));
        out.put_code(32 * half + 24 + k, Vec::bit_and(Vec::shift_right<6>(v[k]), two));
      }
    }
  }
};

struct Q3_K : Layout<110, 256, 108> {
  using Form = Form256<16, false, 4, 8>;
  template <int half>
  static void put(const uint8_t* const* row, size_t at, const Vec::Int mask[8], const TileAt& out) {
    const Vec::Int two = Vec::all8(3);
    const Vec::Int third = Vec::all8(4);
    Vec::Int v[8];
    load_rows32(row, at + 32 + 32 * half, v);
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) {
      const auto code = [&](Vec::Int pair, Vec::Int bit) {
        return Vec::bit_or(Vec::bit_and(pair, two), Vec::bit_and(bit, third));
      };
      // Bit 4 * half + quarter of the mask goes to bit 2.
      const Vec::Int m = mask[k];
      out.put_code(32 * half + k,
                   code(v[k], half == 0 ? Vec::shift_left<2>(m) : Vec::shift_right<2>(m)));
      out.put_code(32 * half + 8 + k,
                   code(Vec::shift_right<2>(v[k]),
                        half == 0 ? Vec::shift_left<1>(m) : Vec::shift_right<3>(m)));
      out.put_code(32 * half + 16 + k,
                   code(Vec::shift_right<4>(v[k]), half == 0 ? m : Vec::shift_right<4>(m)));
      out.put_code(32 * half + 24 + k,
                   code(Vec::shift_right<6>(v[k]),
                        half == 0 ? Vec::shift_right<1>(m) : Vec::shift_right<5>(m)));
    }
  }
  static void unpack(const uint8_t* const* row, size_t at, const TileAt& out) {
    Vec::Int s[4];  // from four bytes before the scales, so that the load ends inside the block
    Vec::load_rows16(row, at + 92, s);
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
    load_rows32(row, at, mask);
    put<0>(row, at, mask, out);
    put<1>(row, at, mask, out);
  }
};

struct IQ4_XS : Layout<136, 256, 0> {
  using Form = TermForm<256, 32, true, false, kOffset8, 1, Vec::kSigned8>;
  static void unpack(const uint8_t* const* row, size_t at, const TileAt& out) {
    const Vec::Int high = Vec::shift_right<16>(Vec::load_rows4(row, at));
    const Vec::Int low = Vec::load_rows4(row, at + 4);
    put_group<0>(row, at, low, high, out);
    put_group<1>(row, at, low, high, out);
    put_group<2>(row, at, low, high, out);
    put_group<3>(row, at, low, high, out);
    put_group<4>(row, at, low, high, out);
    put_group<5>(row, at, low, high, out);
    put_group<6>(row, at, low, high, out);
    put_group<7>(row, at, low, high, out);
  }
  template <int g>
  static void put_group(const uint8_t* const* row, size_t at, Vec::Int low, Vec::Int high,
                        const TileAt& out) {
    const Vec::Int scale =
        Vec::bit_or(Vec::bit_and(Vec::shift_right<4 * g>(low), Vec::all32(15)),
                    Vec::shift_left<4>(Vec::bit_and(Vec::shift_right<2 * g>(high), Vec::all32(3))));
    out.put_scale(g, Vec::sub32(scale, Vec::all32(32)));
    put_non_linear(row, at + 8 + 16 * g, out, 8 * g);
  }
};
