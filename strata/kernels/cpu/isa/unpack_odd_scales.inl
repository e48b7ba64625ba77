// What all ways to look codebooks up have in common. quant/iq_grids.cpp has the layouts.

// 2s + 1, where s is the lowest byte of each lane.
STRATA_INLINE Vec::Int odd_scale(Vec::Int s) {
  return Vec::bit_or(Vec::shift_left<1>(Vec::bit_and(s, Vec::all32(255))), Vec::all32(1));
}

// Eight nibbles a lane to eight scales.
STRATA_INLINE void put_nibble_scales(Vec::Int v, int first, auto& out) {
  const Vec::Int mask = Vec::all8(15);
  const Vec::Int even = Vec::bit_and(v, mask);
  const Vec::Int odd = Vec::bit_and(Vec::shift_right<4>(v), mask);
  out.put_scale(first, odd_scale(even));
  out.put_scale(first + 1, odd_scale(odd));
  out.put_scale(first + 2, odd_scale(Vec::shift_right<8>(even)));
  out.put_scale(first + 3, odd_scale(Vec::shift_right<8>(odd)));
  out.put_scale(first + 4, odd_scale(Vec::shift_right<16>(even)));
  out.put_scale(first + 5, odd_scale(Vec::shift_right<16>(odd)));
  out.put_scale(first + 6, odd_scale(Vec::shift_right<24>(even)));
  out.put_scale(first + 7, odd_scale(Vec::shift_right<24>(odd)));
}

struct IQ2XXSForm : Layout<66, 256, 0> {
  using Form = Form256<32, false, 64, 1>;
  static constexpr int kLoads = Vec::kLanes;
  static constexpr float kDFactor = 0.125f;
  STRATA_INLINE static void put_all_scales(const auto& rows, auto& out) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {  // indices and signs of two groups
      Vec::Int v[4];
      Vec::load_rows16(rows, 2 + 16 * i, v);
      out.put_scale(2 * i, odd_scale(Vec::shift_right<28>(v[1])));
      out.put_scale(2 * i + 1, odd_scale(Vec::shift_right<28>(v[3])));
    }
  }
};

struct IQ2XSForm : Layout<74, 256, 0> {
  using Form = Form256<16, false, 64, 1>;
  static constexpr int kLoads = Vec::kLanes;
  static constexpr float kDFactor = 0.125f;
  STRATA_INLINE static void put_all_scales(const auto& rows, auto& out) {
    Vec::Int v[4];
    Vec::load_rows16(rows, 58, v);
    put_nibble_scales(v[2], 0, out);
    put_nibble_scales(v[3], 8, out);
  }
};

struct IQ2SForm : Layout<82, 256, 0> {
  using Form = Form256<16, false, 64, 1>;
  static constexpr int kLoads = Vec::kLanes;
  static constexpr float kDFactor = 0.125f;
  STRATA_INLINE static void put_all_scales(const auto& rows, auto& out) {
    Vec::Int v[4];
    Vec::load_rows16(rows, 66, v);
    put_nibble_scales(v[2], 0, out);
    put_nibble_scales(v[3], 8, out);
  }
};

struct IQ3XXSForm : Layout<98, 256, 0> {
  using Form = Form256<32, false, 64, 1>;
  static constexpr int kLoads = Vec::kLanes;
  static constexpr float kDFactor = 0.25f;
  STRATA_INLINE static void put_all_scales(const auto& rows, auto& out) {
    Vec::Int v[8];
    Vec::load_rows32(rows, 66, v);
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) out.put_scale(g, odd_scale(Vec::shift_right<28>(v[g])));
  }
};

struct IQ3SForm : Layout<110, 256, 0> {
  using Form = Form256<32, false, 16, 4>;
  static constexpr int kLoads = Vec::kLanes;
  STRATA_INLINE static void put_all_scales(const auto& rows, auto& out) {
    Vec::Int v[4];
    Vec::load_rows16(rows, 94, v);
    put_nibble_scales(v[3], 0, out);
  }
};
