// Where the blocks of a group of weight rows come from: rows as a file has them, or tiles. Both
// offer
//   set(a, first_row, n_weight_rows, block, n_blocks)  goes to some blocks of up to n rows
//   at(b, lane)                                        block b of Vec::kLanes rows, to unpack
//   d(b, lane), dmin(b, lane)                          its scales

// Rows of a file. Where fewer than n are left, a copy of them stands in, so that kernels know one
// shape; nobody reads the results of the missing ones.
template <class T, int n, int max_blocks>
struct RowPanel {
  static constexpr int kCopyBytes = max_blocks * T::kBlockBytes;
  const uint8_t* rows;
  size_t stride;
  size_t to_next;  // from behind the end of a row to the same row of the next panel
  int first_block, n_row_blocks;
  alignas(64) float d_of[max_blocks][n];
  alignas(64) float dmin_of[T::kDmin >= 0 ? max_blocks : 1][n];
  uint8_t copy[n * kCopyBytes];

  STRATA_INLINE RowPanel() {}  // leaves the arrays as they are
  STRATA_INLINE void set(const DotArgs& a, int first_row, int n_weight_rows, int block,
                         int n_blocks) {
    stride = a.w_row_bytes;
    rows =
        a.w + static_cast<size_t>(first_row) * stride + static_cast<size_t>(block) * T::kBlockBytes;
    first_block = block;
    n_row_blocks = a.cols / T::kBlockValues;
    to_next = first_row + 2 * n <= a.end_row ? (n - 1) * stride : 0;
    if (n_weight_rows < n) copy_rows(n_weight_rows, n_blocks);
    put_scales<T::kD>(n_blocks, T::kDFactor, d_of);
    if constexpr (T::kDmin >= 0) put_scales<T::kDmin>(n_blocks, T::kDminFactor, dmin_of);
  }
  STRATA_INLINE RowsAt at(int b, int lane) const {
    constexpr int kLines = (T::kBlockBytes + 63) / 64;
    constexpr int kAhead = (ahead_bytes(T::kBlockBytes) + T::kBlockBytes - 1) / T::kBlockBytes;
    const uint8_t* block = rows + b * T::kBlockBytes + static_cast<size_t>(lane) * stride;
    const int n_far = kAhead < n_row_blocks ? kAhead : n_row_blocks;
    RowsAt at = {block, stride, block + n_far * T::kBlockBytes, Vec::kLanes * kLines, 0, 0};
    if (first_block + b + n_far >= n_row_blocks) at.ahead += to_next;
    if constexpr (T::kBlockBytes <= 32) {  // one row in two: a line holds more than two blocks
      at.n_ahead = Vec::kLanes / 2;
      if (b % 2 != 0) at.ahead += Vec::kLanes / 2 * stride;
    }
    at.a_load = (at.n_ahead + T::kLoads - 1) / T::kLoads;
    return at;
  }
  STRATA_INLINE Vec::Float d(int b, int lane) const { return Vec::load_float(d_of[b] + lane); }
  STRATA_INLINE Vec::Float dmin(int b, int lane) const {
    return Vec::load_float(dmin_of[b] + lane);
  }

  void copy_rows(int n_weight_rows, int n_blocks) {
    for (int r = 0; r < n; ++r) {
      uint8_t* to = copy + r * kCopyBytes;
      const auto bytes = static_cast<size_t>(n_blocks * T::kBlockBytes);
      if (r < n_weight_rows) {
        __builtin_memcpy(to, rows + static_cast<size_t>(r) * stride, bytes);
      } else {
        __builtin_memset(to, 0, bytes);
      }
    }
    rows = copy;
    stride = kCopyBytes;
  }
  template <int offset>
  STRATA_INLINE void put_scales(int n_blocks, float factor, float (*out)[n]) {
    alignas(64) uint16_t half[max_blocks][n];
    for (int r = 0; r < n; ++r) {
      const uint8_t* p = rows + static_cast<size_t>(r) * stride + offset;
#pragma GCC unroll 4
      for (int b = 0; b < n_blocks; ++b) __builtin_memcpy(&half[b][r], p + b * T::kBlockBytes, 2);
    }
    for (int b = 0; b < n_blocks; ++b) {
      for (int lane = 0; lane < n; lane += Vec::kLanes) {
        Vec::store_float(out[b] + lane,
                         Vec::mul(Vec::load_half(half[b] + lane), Vec::all_float(factor)));
      }
    }
  }
};

// Tiles of 16 rows, quant/tiles.h.
template <class T>
struct TilePanel {
  static constexpr int kHalfBytes = 2 * Tile::kRows;  // one scale of all rows
  static constexpr int kHeadBytes = 2 * T::kHalves;
  static constexpr int kFirstWord = T::kD == 0 ? kHeadBytes : 0;
  static constexpr size_t kWordsBytes = (T::kBlockBytes - kHeadBytes) * Tile::kRows;
  const uint8_t* halves;
  const uint8_t* words;

  STRATA_INLINE void set(const DotArgs& a, int first_row, int, int block, int) {
    const int in_tile = first_row % Tile::kRows;
    const uint8_t* tile = a.w + static_cast<size_t>(first_row - in_tile) * a.w_row_bytes;
    const int n_row_blocks = a.cols / T::kBlockValues;
    halves = tile + block * T::kHalves * kHalfBytes + 2 * in_tile;
    words = tile + n_row_blocks * T::kHalves * kHalfBytes +
            static_cast<size_t>(block) * kWordsBytes + 4 * in_tile;
  }
  STRATA_INLINE static void ask(const DotArgs& a, int first_row, int n_blocks) {
    TilePanel panel;
    panel.set(a, first_row, Tile::kRows, 0, 0);
    const int n = n_blocks < a.cols / T::kBlockValues ? n_blocks : a.cols / T::kBlockValues;
    const size_t bytes = static_cast<size_t>(n) * kWordsBytes;
    for (size_t i = 0; i < bytes; i += 64) Vec::prefetch(panel.words + i);
    for (size_t i = 0; i < static_cast<size_t>(n) * T::kHalves * kHalfBytes; i += 64) {
      Vec::prefetch(panel.halves + i);
    }
  }
  STRATA_INLINE TileAt at(int b, int lane) const {
    return {words + static_cast<size_t>(b) * kWordsBytes + 4 * lane - kFirstWord * Tile::kRows,
            half(b, T::kHalves - 1, lane)};
  }
  STRATA_INLINE Vec::Float d(int b, int lane) const {
    return Vec::mul(Vec::load_half(half(b, 0, lane)), Vec::all_float(T::kDFactor));
  }
  STRATA_INLINE Vec::Float dmin(int b, int lane) const {
    return Vec::mul(Vec::load_half(half(b, 1, lane)), Vec::all_float(T::kDminFactor));
  }
  STRATA_INLINE const uint8_t* half(int b, int h, int lane) const {
    return halves + (b * T::kHalves + h) * kHalfBytes + 2 * lane;
  }
};
