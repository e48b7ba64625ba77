// Up to 16 weight rows times up to kMaxCols columns, taken apart: what unpack_*.inl write and
// dot_gemm.inl reads. It stays in the first-level cache. Row r is lane r everywhere.
struct Tile {
  static constexpr int kRows = 16;
  static constexpr int kMaxCols = 512;
  static constexpr int kMaxTerms = kMaxCols / 32;
  alignas(64) uint8_t code[kMaxCols / 4][kRows][4];  // four columns a lane
  alignas(64) float d[kMaxTerms][kRows];
  alignas(64) float dmin[kMaxTerms][kRows];
  alignas(64) int32_t scale[kMaxCols / 16][kRows];   // one a group of 16 or 32 columns
  alignas(64) int16_t min[kMaxCols / 32][kRows][2];  // one a group of 16 columns
};

// What rows of activations are multiplied with at once: 32 weight rows, or 16.
struct TilePair {
  static constexpr int kRows = 2 * Tile::kRows;
  Tile tile[2];
};

// A block's place in a tile.
struct TileSink {
  uint8_t* code;
  int32_t* scale;
  int16_t* min;
  STRATA_INLINE void put_code(int k, Vec::Int x) { Vec::store(code + 64 * k, x); }
  STRATA_INLINE void put_scale(int g, Vec::Int x) { Vec::store(scale + 16 * g, x); }
  STRATA_INLINE void put_min(int pair, Vec::Int x) { Vec::store(min + 32 * pair, x); }
};

constexpr int kSegments = 8;

// The row's terms lie in eight contiguous segments; end[s] is behind the last term of s.
struct Segments {
  int end[kSegments];
  explicit Segments(int n_terms) {
    for (int s = 0; s < kSegments; ++s) {
      end[s] = static_cast<int>(static_cast<int64_t>(s + 1) * n_terms / kSegments);
    }
  }
};
