// The loops over weight rows, columns and activations.

// d of n_blocks blocks of n_rows weight rows, one row a lane.
template <class T, int offset, int n_rows>
STRATA_INLINE void put_block_scales(const uint8_t* rows, size_t stride, int n_blocks, float factor,
                                    float (*out)[n_rows]) {
  constexpr int kTerms = T::kBlockValues / T::Form::kValues;
  alignas(64) uint16_t half[Tile::kMaxTerms / kTerms][n_rows];
  for (int r = 0; r < n_rows; ++r) {
    const uint8_t* p = rows + static_cast<size_t>(r) * stride + offset;
#pragma GCC unroll 4
    for (int b = 0; b < n_blocks; ++b) __builtin_memcpy(&half[b][r], p + b * T::kBlockBytes, 2);
  }
  for (int b = 0; b < n_blocks; ++b) {
    for (int lane = 0; lane < n_rows; lane += Vec::kLanes) {
      const Vec::Float d = Vec::mul(Vec::load_half(half[b] + lane), Vec::all_float(factor));
#pragma GCC unroll 2
      for (int t = 0; t < kTerms; ++t) Vec::store_float(out[b * kTerms + t] + lane, d);
    }
  }
}

// The blocks of n weight rows from some column on. Where fewer than n rows are left, a copy of them
// stands in, so that kernels know one shape; nobody reads the results of the missing ones.
template <class T, int n, int max_blocks>
struct Panel {
  static constexpr int kCopyBytes = max_blocks * T::kBlockBytes;
  const uint8_t* rows;
  size_t stride;
  size_t to_next;  // from behind the end of a row to the same row of the next panel
  int first_block, n_row_blocks;
  uint8_t copy[n * kCopyBytes];

  STRATA_INLINE Panel() {}  // leaves the copy as it is
  STRATA_INLINE void set(const DotArgs& a, int first_row, int n_weight_rows, int block,
                         int n_blocks) {
    stride = a.w_row_bytes;
    rows =
        a.w + static_cast<size_t>(first_row) * stride + static_cast<size_t>(block) * T::kBlockBytes;
    first_block = block;
    n_row_blocks = a.cols / T::kBlockValues;
    to_next = first_row + 2 * n <= a.end_row ? (n - 1) * stride : 0;
    if (n_weight_rows == n) return;
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
  // Block b of kLanes rows from `first` on.
  STRATA_INLINE RowsAt at(int b, int first) const {
    constexpr int kLines = (T::kBlockBytes + 63) / 64;
    constexpr int kAhead = (ahead_bytes(T::kBlockBytes) + T::kBlockBytes - 1) / T::kBlockBytes;
    const uint8_t* block = rows + b * T::kBlockBytes + static_cast<size_t>(first) * stride;
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
};

template <class T>
constexpr int kTermsABlock = T::kBlockValues / T::Form::kValues;

STRATA_INLINE float* result_row(const DotArgs& a, int i) {
  return a.y + static_cast<int64_t>(a.y_index ? a.y_index[i] : i) * a.y_stride;
}

template <class T>
STRATA_INLINE XRow x_row(const DotArgs& a, int i, int block) {
  const int64_t row = a.x_index ? a.x_index[i] : i;
  const int64_t at = row * a.cols + static_cast<int64_t>(block) * T::kBlockValues;
  return {a.q + at, a.scale + at / T::Form::kValues, a.sums + at / 16};
}

// One row of activations.
template <class T>
void multiply_one(const DotArgs& a, const Segments& segments) {
  using Form = typename T::Form;
  constexpr int kTerms = kTermsABlock<T>;
  constexpr int kRows = Vec::kLanes;
  constexpr int kChunk = 1024 / T::kBlockValues;  // blocks whose scales are read together
  const int n_blocks = a.cols / T::kBlockValues;
  Panel<T, kRows, kChunk> panel;
  alignas(64) float d[kChunk * kTerms][kRows];
  alignas(64) float dmin[kChunk * kTerms][kRows];
  for (int o = a.first_row; o < a.end_row; o += kRows) {
    const int n_w = a.end_row - o < kRows ? a.end_row - o : kRows;
    Vec::Float acc = Vec::zero_float();
    Vec::Float total = Vec::zero_float();
    int s = 0;
    while (segments.end[s] == 0) ++s;  // empty ones add +0 to +0
    for (int block = 0; block < n_blocks; block += kChunk) {
      const int n = n_blocks - block < kChunk ? n_blocks - block : kChunk;
      panel.set(a, o, n_w, block, n);
      put_block_scales<T, T::kD, kRows>(panel.rows, panel.stride, n, T::kDFactor, d);
      if constexpr (T::kDmin >= 0) {
        put_block_scales<T, T::kDmin, kRows>(panel.rows, panel.stride, n, T::kDminFactor, dmin);
      }
      for (int b = 0; b < n; ++b) {
        const XRow x = x_row<T>(a, 0, block + b);
        DotSink<Form, T::kBlockValues> sink(x);
        unpack_block<T>(*a.grids, panel.at(b, 0), sink);
#pragma GCC unroll 2
        for (int t = 0; t < kTerms; ++t) {
          const int i = b * kTerms + t;
          const Vec::Float dx = Vec::all_float(x.scale[t]);
          acc = Vec::fma(Vec::to_float(sink.sum(t)), Vec::mul(Vec::load_float(d[i]), dx), acc);
          if constexpr (Form::kMin) {
            acc = Vec::fnma(Vec::to_float(sink.min_sum(t)), Vec::mul(Vec::load_float(dmin[i]), dx),
                            acc);
          }
          const int done = block * kTerms + i + 1;
          for (; s < kSegments && segments.end[s] == done; ++s) {
            total = s == 0 ? acc : Vec::add(total, acc);
            acc = Vec::zero_float();
          }
        }
      }
    }
    alignas(64) float y[kRows];
    Vec::store_float(y, total);
    float* out = result_row(a, 0) + o;
    for (int r = 0; r < n_w; ++r) out[r] = y[r];
  }
}

// Several rows of activations share one unpacked tile; their codes stay in the second-level cache.
constexpr int kMaxXRows = 64;

template <class T>
void unpack_tile(const DotGrids& grids, int n_blocks, const auto& panel, Tile& tile) {
  put_block_scales<T, T::kD, Tile::kRows>(panel.rows, panel.stride, n_blocks, T::kDFactor, tile.d);
  if constexpr (T::kDmin >= 0) {
    put_block_scales<T, T::kDmin, Tile::kRows>(panel.rows, panel.stride, n_blocks, T::kDminFactor,
                                               tile.dmin);
  }
  for (int b = 0; b < n_blocks; ++b) {
    for (int lane = 0; lane < Tile::kRows; lane += Vec::kLanes) {
      TileSink sink{tile.code[b * (T::kBlockValues / 4)][lane],
                    tile.scale[b * (T::kBlockValues / T::Form::kGroup)] + lane,
                    tile.min[b * (T::kBlockValues / 32)][lane]};
      unpack_block<T>(grids, panel.at(b, lane), sink);
    }
  }
}

template <class T>
void multiply_tiles(const DotArgs& a, int first_x, int n_x, const Segments& segments) {
  constexpr int kChunk = Tile::kMaxCols / T::kBlockValues;
  constexpr int kTerms = kTermsABlock<T>;
  const int n_blocks = a.cols / T::kBlockValues;
  Tile tile;
  Panel<T, Tile::kRows, kChunk> panel;
  Partial partial[kMaxXRows];
  XRow x[kMaxXRows];
  for (int o = a.first_row; o < a.end_row; o += Tile::kRows) {
    const int n_w = a.end_row - o < Tile::kRows ? a.end_row - o : Tile::kRows;
    for (int i = 0; i < n_x; ++i) {
      for (int r = 0; r < Tile::kRows; ++r) partial[i].segment[r] = partial[i].total[r] = 0;
    }
    for (int block = 0; block < n_blocks; block += kChunk) {
      const int n = n_blocks - block < kChunk ? n_blocks - block : kChunk;
      panel.set(a, o, n_w, block, n);
      unpack_tile<T>(*a.grids, n, panel, tile);
      for (int i = 0; i < n_x; ++i) x[i] = x_row<T>(a, first_x + i, block);
      multiply_tile<typename T::Form>(tile, block * kTerms, (block + n) * kTerms, segments, x, n_x,
                                      partial);
    }
    for (int i = 0; i < n_x; ++i) {
      float* y = result_row(a, first_x + i) + o;
      for (int r = 0; r < n_w; ++r) y[r] = partial[i].total[r];
    }
  }
}

template <class T>
void multiply(const DotArgs& a) {
  const Segments segments(a.cols / T::Form::kValues);
  if (a.n_rows == 1) {
    multiply_one<T>(a, segments);
    return;
  }
  for (int first_x = 0; first_x < a.n_rows; first_x += kMaxXRows) {
    const int n_x = a.n_rows - first_x < kMaxXRows ? a.n_rows - first_x : kMaxXRows;
    multiply_tiles<T>(a, first_x, n_x, segments);
  }
}
