// The IQ types whose octets come from a codebook. Look-ups go row by row, into a buffer of codes
// that are then turned so that a row is a lane. quant/iq_grids.cpp has the layouts.

// Codes of one block of each row, with the form's offset added.
struct GridCodes {
  // 64 bytes apart from a power of two, so that rows do not share a cache set.
  alignas(64) uint8_t row[Vec::kLanes][256 + 64];
};

// For a sign byte, 0xFF where a value is negated. The second half of the 7-bit table is the parity.
struct SignMasks {
  uint64_t full[256] = {};
  uint64_t seven[128] = {};
  constexpr SignMasks() {
    for (int s = 0; s < 256; ++s) {
      for (int i = 0; i < 8; ++i) {
        if ((s >> i & 1) != 0) full[s] |= uint64_t{0xFF} << (8 * i);
      }
    }
    for (int s = 0; s < 128; ++s) {
      int ones = 0;
      for (int i = 0; i < 7; ++i) ones += s >> i & 1;
      seven[s] = full[s | (ones % 2) << 7];
    }
  }
};
constexpr SignMasks kSignMasks;

inline uint32_t load_u16(const uint8_t* p) {
  uint16_t v;
  __builtin_memcpy(&v, p, 2);
  return v;
}
inline uint32_t load_u32(const uint8_t* p) {
  uint32_t v;
  __builtin_memcpy(&v, p, 4);
  return v;
}

inline __m256i four_words(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  return _mm256_set_epi64x(static_cast<long long>(d), static_cast<long long>(c),
                           static_cast<long long>(b), static_cast<long long>(a));
}

// 32 values, negated where the mask has ones.
template <int offset>
inline void put_signed(uint8_t* out, __m256i values, __m256i mask) {
  const __m256i less = _mm256_sub_epi8(_mm256_set1_epi8(offset), mask);
  _mm256_store_si256(reinterpret_cast<__m256i*>(out),
                     _mm256_add_epi8(_mm256_xor_si256(values, mask), less));
}

inline __m256i seven_bit_masks(uint32_t signs) {
  return four_words(kSignMasks.seven[signs & 127], kSignMasks.seven[signs >> 7 & 127],
                    kSignMasks.seven[signs >> 14 & 127], kSignMasks.seven[signs >> 21 & 127]);
}
inline __m256i full_masks(const uint8_t* signs) {
  return four_words(kSignMasks.full[signs[0]], kSignMasks.full[signs[1]], kSignMasks.full[signs[2]],
                    kSignMasks.full[signs[3]]);
}
inline __m256i eight_entries(const uint32_t* grid, const uint32_t (&i)[8]) {
  return _mm256_set_epi32(static_cast<int>(grid[i[7]]), static_cast<int>(grid[i[6]]),
                          static_cast<int>(grid[i[5]]), static_cast<int>(grid[i[4]]),
                          static_cast<int>(grid[i[3]]), static_cast<int>(grid[i[2]]),
                          static_cast<int>(grid[i[1]]), static_cast<int>(grid[i[0]]));
}

struct IQ2_XXS : IQ2XXSForm {
  static void look_up(const DotGrids& grids, const uint8_t* block, uint8_t* out) {
    const uint64_t* grid = grids.iq2xxs;
    for (int g = 0; g < 8; ++g) {
      const uint8_t* p = block + 2 + 8 * g;
      put_signed<64>(out + 32 * g, four_words(grid[p[0]], grid[p[1]], grid[p[2]], grid[p[3]]),
                     seven_bit_masks(load_u32(p + 4)));
    }
  }
};

struct IQ2_XS : IQ2XSForm {
  static void look_up(const DotGrids& grids, const uint8_t* block, uint8_t* out) {
    const uint64_t* grid = grids.iq2xs;
    for (int g = 0; g < 8; ++g) {
      const uint32_t a = load_u16(block + 2 + 8 * g), b = load_u16(block + 4 + 8 * g);
      const uint32_t c = load_u16(block + 6 + 8 * g), d = load_u16(block + 8 + 8 * g);
      const uint64_t* signs = kSignMasks.seven;
      put_signed<64>(out + 32 * g,
                     four_words(grid[a & 511], grid[b & 511], grid[c & 511], grid[d & 511]),
                     four_words(signs[a >> 9], signs[b >> 9], signs[c >> 9], signs[d >> 9]));
    }
  }
};

struct IQ2_S : IQ2SForm {
  static void look_up(const DotGrids& grids, const uint8_t* block, uint8_t* out) {
    const uint64_t* grid = grids.iq2s;
    for (int g = 0; g < 8; ++g) {
      const uint8_t* q = block + 2 + 4 * g;
      const uint32_t high = block[66 + g];
      put_signed<64>(out + 32 * g,
                     four_words(grid[q[0] | (high << 8 & 0x300)], grid[q[1] | (high << 6 & 0x300)],
                                grid[q[2] | (high << 4 & 0x300)], grid[q[3] | (high << 2 & 0x300)]),
                     full_masks(block + 34 + 4 * g));
    }
  }
};

struct IQ3_XXS : IQ3XXSForm {
  static void look_up(const DotGrids& grids, const uint8_t* block, uint8_t* out) {
    for (int g = 0; g < 8; ++g) {
      const uint8_t* q = block + 2 + 8 * g;
      const uint32_t index[8] = {q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7]};
      put_signed<64>(out + 32 * g, eight_entries(grids.iq3xxs, index),
                     seven_bit_masks(load_u32(block + 66 + 4 * g)));
    }
  }
};

struct IQ3_S : IQ3SForm {
  static void look_up(const DotGrids& grids, const uint8_t* block, uint8_t* out) {
    for (int g = 0; g < 8; ++g) {
      const uint8_t* q = block + 2 + 8 * g;
      const uint32_t high = block[66 + g];
      const uint32_t index[8] = {q[0] | (high << 8 & 256), q[1] | (high << 7 & 256),
                                 q[2] | (high << 6 & 256), q[3] | (high << 5 & 256),
                                 q[4] | (high << 4 & 256), q[5] | (high << 3 & 256),
                                 q[6] | (high << 2 & 256), q[7] | (high << 1 & 256)};
      put_signed<16>(out + 32 * g, eight_entries(grids.iq3s, index),
                     full_masks(block + 74 + 4 * g));
    }
  }
};

// Turns the codes of one block so that a row is a lane.
STRATA_INLINE void put_grid_codes(const GridCodes& codes, auto& out) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    Vec::Int v[8];
    Vec::turn_rows32(codes.row[0] + 32 * i, sizeof(codes.row[0]), v);
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) out.put_code(8 * i + k, v[k]);
  }
}

// The bytes of a block of each row, apart from d.
template <class T, class At>
struct BlockBytes;
template <class T>
struct BlockBytes<T, RowsAt> {
  const RowsAt& rows;
  STRATA_INLINE explicit BlockBytes(const RowsAt& at) : rows(at) {}
  STRATA_INLINE const uint8_t* of(int r) const {
    Vec::prefetch(rows, 1);
    return rows.base + static_cast<size_t>(r) * rows.stride;
  }
};
template <class T>
struct BlockBytes<T, TileAt> {
  uint8_t bytes[Vec::kLanes][T::kBlockBytes + 2];
  STRATA_INLINE explicit BlockBytes(const TileAt& at) {
    for (int i = 2; i < T::kBlockBytes; i += 4) {
      for (int r = 0; r < Vec::kLanes; ++r) {
        __builtin_memcpy(bytes[r] + i, at.words + 16 * i + 4 * r, 4);
      }
    }
  }
  STRATA_INLINE const uint8_t* of(int r) const { return bytes[r]; }
};

template <class T>
struct LookedUp : T {
  static constexpr int kFewRows = 1;  // what is looked up serves all rows
  template <class At>
  STRATA_INLINE static void unpack(const DotGrids& grids, const At& rows, auto& out) {
    GridCodes codes;
    const BlockBytes<T, At> bytes(rows);
    for (int r = 0; r < Vec::kLanes; ++r) T::look_up(grids, bytes.of(r), codes.row[r]);
    T::put_all_scales(rows, out);
    put_grid_codes(codes, out);
  }
};
