// The types with codebooks by byte permutes (VBMI): 64 indices of 16 rows are looked up at once, in
// planes (grid_planes.h) that hold a part of each entry. What comes out has the order of crossed
// activations: byte j of a lane is column 4j + p of 16.

STRATA_INLINE Vec::Int plane_load(const uint8_t* p) { return _mm512_load_si512(p); }

// Each index byte replaced by its entry; `top` has the bits 7 of the indices.
STRATA_INLINE Vec::Int look_up256(const uint8_t* table, Vec::Int index, __mmask64 top) {
  const Vec::Int low = _mm512_permutex2var_epi8(plane_load(table), index, plane_load(table + 64));
  const Vec::Int high =
      _mm512_permutex2var_epi8(plane_load(table + 128), index, plane_load(table + 192));
  return _mm512_mask_blend_epi8(top, low, high);
}
STRATA_INLINE Vec::Int look_up512(const uint8_t* table, Vec::Int index, __mmask64 top,
                                  __mmask64 ninth) {
  return _mm512_mask_blend_epi8(ninth, look_up256(table, index, top),
                                look_up256(table + 256, index, top));
}
STRATA_INLINE Vec::Int look_up128(const uint8_t* table, Vec::Int index) {
  return _mm512_permutex2var_epi8(plane_load(table), index, plane_load(table + 64));
}

// Bytes b0 to b3 in each lane.
STRATA_INLINE Vec::Int lane_bytes(int b0, int b1, int b2, int b3) {
  return Vec::all32(static_cast<int>(static_cast<uint32_t>(b0) | static_cast<uint32_t>(b1) << 8 |
                                     static_cast<uint32_t>(b2) << 16 |
                                     static_cast<uint32_t>(b3) << 24));
}
// For a shuffle inside 128 bits: byte b of each lane, at each place.
STRATA_INLINE Vec::Int shuffle_lanes(Vec::Int x, int b0, int b1, int b2, int b3) {
  const Vec::Int lane =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12));
  return _mm512_shuffle_epi8(x, _mm512_add_epi8(lane, lane_bytes(b0, b1, b2, b3)));
}
// For a permutation of the bytes of two vectors: place j of each lane takes byte b_j of the first's
// lane, or byte b_j - 4 of the second's. A constant: built in place it would go through the stack.
template <int b0, int b1, int b2, int b3>
struct BytePick {
  alignas(64) uint8_t index[64] = {};
  constexpr BytePick() {
    constexpr int kFrom[4] = {b0, b1, b2, b3};
    for (int i = 0; i < 64; ++i) {
      const int f = kFrom[i % 4];
      index[i] = static_cast<uint8_t>(i / 4 * 4 + f % 4 + (f < 4 ? 0 : 64));
    }
  }
};
template <int b0, int b1, int b2, int b3>
constexpr BytePick<b0, b1, b2, b3> kBytePick;
template <int b0, int b1, int b2, int b3>
STRATA_INLINE Vec::Int pick_bytes(Vec::Int a, Vec::Int b) {
  return _mm512_permutex2var_epi8(a, plane_load(kBytePick<b0, b1, b2, b3>.index), b);
}
// Byte j of each lane: the eight bits of the lane from bit b_j on.
STRATA_INLINE Vec::Int pick_bits(Vec::Int x, int b0, int b1, int b2, int b3) {
  const auto four = [](int a, int b, int c, int d) {
    return static_cast<uint64_t>(a) | static_cast<uint64_t>(b) << 8 |
           static_cast<uint64_t>(c) << 16 | static_cast<uint64_t>(d) << 24;
  };
  const uint64_t control = four(b0, b1, b2, b3) | four(b0 + 32, b1 + 32, b2 + 32, b3 + 32) << 32;
  return _mm512_multishift_epi64_epi8(_mm512_set1_epi64(static_cast<long long>(control)), x);
}

// Puts columns p, 4 + p, 8 + p and 12 + p of 16, given as value + offset. Bytes 0 and 1 of signs
// are the sign byte of the first eight columns, 2 and 3 that of the others.
template <int offset, int p>
STRATA_INLINE void put_signed(int k, Vec::Int value, Vec::Int signs, auto& out) {
  const __mmask64 minus =
      _mm512_test_epi8_mask(signs, lane_bytes(1 << p, 16 << p, 1 << p, 16 << p));
  out.put_code(k + p, _mm512_mask_sub_epi8(value, minus, Vec::all8(2 * offset), value));
}

// 16 columns of which a and b have the nibbles of positions 0 and 1, and 2 and 3, of four entries.
template <int offset>
STRATA_INLINE void put_nibble_values(int k, const uint8_t* values, Vec::Int a, Vec::Int b,
                                     Vec::Int signs, auto& out) {
  const Vec::Int table = Vec::table16(values);
  put_signed<offset, 0>(k, Vec::look_up(table, a), signs, out);
  put_signed<offset, 1>(k, Vec::look_up(table, Vec::shift_right<4>(a)), signs, out);
  put_signed<offset, 2>(k, Vec::look_up(table, b), signs, out);
  put_signed<offset, 3>(k, Vec::look_up(table, Vec::shift_right<4>(b)), signs, out);
}

// 16 columns, four a byte.
STRATA_INLINE void put_pair_values(int k, const GridPlanes& planes, Vec::Int v, Vec::Int signs,
                                   auto& out) {
  const Vec::Int last = plane_load(planes.iq2_value[2]);
  put_signed<64, 0>(k, _mm512_permutexvar_epi8(v, plane_load(planes.iq2_value[0])), signs, out);
  put_signed<64, 1>(k, _mm512_permutexvar_epi8(v, plane_load(planes.iq2_value[1])), signs, out);
  put_signed<64, 2>(k, _mm512_permutexvar_epi8(v, last), signs, out);
  put_signed<64, 3>(k, _mm512_permutexvar_epi8(Vec::shift_right<2>(v), last), signs, out);
}

// 32 columns: positions 0 to 3 and 4 to 7 of four entries of eight.
STRATA_INLINE void put_octets(int k, const GridPlanes& planes, Vec::Int low, Vec::Int high,
                              Vec::Int signs0, Vec::Int signs1, auto& out) {
  put_pair_values(k, planes, pick_bytes<0, 4, 1, 5>(low, high), signs0, out);
  put_pair_values(k + 4, planes, pick_bytes<2, 6, 3, 7>(low, high), signs1, out);
}

// The sign bytes of eight and eight columns under four times seven bits.
STRATA_INLINE Vec::Int signs_of_seven(const GridPlanes& planes, Vec::Int bits, int first) {
  return look_up128(planes.signs, pick_bits(bits, first, first, first + 7, first + 7));
}

struct IQ3_XXS : IQ3XXSForm {
  static constexpr bool kCrossed = true;
  STRATA_INLINE static void unpack(const DotGrids& grids, const auto& rows, auto& out) {
    const auto& planes = grids.planes->iq3xxs;
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      Vec::Int index[8], rest[4];
      Vec::load_rows16(rows, 66 + 16 * half, rest);
      Vec::load_rows32(rows, 2 + 32 * half, index);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        out.put_scale(4 * half + i, odd_scale(Vec::shift_right<28>(rest[i])));
#pragma GCC unroll 2
        for (int w = 0; w < 2; ++w) {
          const Vec::Int v = index[2 * i + w];
          const __mmask64 top = _mm512_movepi8_mask(v);
          put_nibble_values<64>(4 * (8 * half + 2 * i + w), planes.value,
                                look_up256(planes.plane[0], v, top),
                                look_up256(planes.plane[1], v, top),
                                signs_of_seven(*grids.planes, rest[i], 14 * w), out);
        }
      }
    }
  }
};

struct IQ3_S : IQ3SForm {
  static constexpr bool kCrossed = true;
  STRATA_INLINE static void unpack(const DotGrids& grids, const auto& rows, auto& out) {
    const auto& planes = grids.planes->iq3s;
    put_all_scales(rows, out);
    Vec::Int high[4];
    Vec::load_rows16(rows, 66, high);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      Vec::Int index[8], signs[4];
      Vec::load_rows16(rows, 74 + 16 * half, signs);
      Vec::load_rows32(rows, 2 + 32 * half, index);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const Vec::Int bits = shuffle_lanes(high[half], i, i, i, i);
#pragma GCC unroll 2
        for (int w = 0; w < 2; ++w) {
          const Vec::Int v = index[2 * i + w];
          const __mmask64 top = _mm512_movepi8_mask(v);
          const int b = 4 * w;
          const __mmask64 ninth =
              _mm512_test_epi8_mask(bits, lane_bytes(1 << b, 2 << b, 4 << b, 8 << b));
          put_nibble_values<16>(4 * (8 * half + 2 * i + w), planes.value,
                                look_up512(planes.plane[0], v, top, ninth),
                                look_up512(planes.plane[1], v, top, ninth),
                                shuffle_lanes(signs[i], 2 * w, 2 * w, 2 * w + 1, 2 * w + 1), out);
        }
      }
    }
  }
};

struct IQ2_XXS : IQ2XXSForm {
  static constexpr bool kCrossed = true;
  STRATA_INLINE static void unpack(const DotGrids& grids, const auto& rows, auto& out) {
    const GridPlanes& planes = *grids.planes;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      Vec::Int v[4];
      Vec::load_rows16(rows, 2 + 16 * i, v);
#pragma GCC unroll 2
      for (int k = 0; k < 2; ++k) {
        const Vec::Int index = v[2 * k], rest = v[2 * k + 1];
        const int g = 2 * i + k;
        out.put_scale(g, odd_scale(Vec::shift_right<28>(rest)));
        const __mmask64 top = _mm512_movepi8_mask(index);
        put_octets(8 * g, planes, look_up256(planes.iq2xxs.plane[0], index, top),
                   look_up256(planes.iq2xxs.plane[1], index, top), signs_of_seven(planes, rest, 0),
                   signs_of_seven(planes, rest, 14), out);
      }
    }
  }
};

struct IQ2_XS : IQ2XSForm {
  static constexpr bool kCrossed = true;
  // 16 bits an octet: nine of index, seven of signs.
  STRATA_INLINE static void put_pair(int g, const GridPlanes& planes, Vec::Int a, Vec::Int b,
                                     auto& out) {
    const Vec::Int index = pick_bytes<0, 2, 4, 6>(a, b);
    const __mmask64 top = _mm512_movepi8_mask(index);
    const __mmask64 ninth = _mm512_test_epi8_mask(pick_bytes<1, 3, 5, 7>(a, b), Vec::all8(1));
    const auto signs = [&](Vec::Int v) {
      return look_up128(planes.signs, pick_bits(v, 9, 9, 25, 25));
    };
    put_octets(8 * g, planes, look_up512(planes.iq2xs.plane[0], index, top, ninth),
               look_up512(planes.iq2xs.plane[1], index, top, ninth), signs(a), signs(b), out);
  }
  STRATA_INLINE static void unpack(const DotGrids& grids, const auto& rows, auto& out) {
    put_all_scales(rows, out);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      Vec::Int v[4];
      Vec::load_rows16(rows, 2 + 16 * i, v);
      put_pair(2 * i, *grids.planes, v[0], v[1], out);
      put_pair(2 * i + 1, *grids.planes, v[2], v[3], out);
    }
  }
};

struct IQ2_S : IQ2SForm {
  static constexpr bool kCrossed = true;
  STRATA_INLINE static void unpack(const DotGrids& grids, const auto& rows, auto& out) {
    const GridPlanes& planes = *grids.planes;
    put_all_scales(rows, out);
    Vec::Int high[4];
    Vec::load_rows16(rows, 66, high);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      Vec::Int index[4], signs[4];
      Vec::load_rows16(rows, 2 + 16 * half, index);
      Vec::load_rows16(rows, 34 + 16 * half, signs);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const __mmask64 top = _mm512_movepi8_mask(index[i]);
        const Vec::Int bits = shuffle_lanes(high[half], i, i, i, i);
        const __mmask64 ninth = _mm512_test_epi8_mask(bits, lane_bytes(1, 4, 16, 64));
        const __mmask64 tenth = _mm512_test_epi8_mask(bits, lane_bytes(2, 8, 32, 128));
        const auto look_up = [&](const uint8_t* table) {
          return _mm512_mask_blend_epi8(tenth, look_up512(table, index[i], top, ninth),
                                        look_up512(table + 512, index[i], top, ninth));
        };
        put_octets(8 * (4 * half + i), planes, look_up(planes.iq2s.plane[0]),
                   look_up(planes.iq2s.plane[1]), shuffle_lanes(signs[i], 0, 0, 1, 1),
                   shuffle_lanes(signs[i], 2, 2, 3, 3), out);
      }
    }
  }
};
