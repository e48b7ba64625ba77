// The loops over weight rows, columns and activations.

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
template <class T, class Panel, int max_blocks>
void multiply_one(const DotArgs& a, const Segments& segments) {
  using Form = typename T::Form;
  constexpr int kTerms = kTermsABlock<T>;
  constexpr int kRows = Vec::kLanes;
  const int n_blocks = a.cols / T::kBlockValues;
  Panel panel;
  for (int o = a.first_row; o < a.end_row; o += kRows) {
    const int n_w = a.end_row - o < kRows ? a.end_row - o : kRows;
    Vec::Float acc = Vec::zero_float();
    Vec::Float total = Vec::zero_float();
    int s = 0;
    while (segments.end[s] == 0) ++s;  // empty ones add +0 to +0
    for (int block = 0; block < n_blocks; block += max_blocks) {
      const int n = n_blocks - block < max_blocks ? n_blocks - block : max_blocks;
      panel.set(a, o, n_w, block, n);
      for (int b = 0; b < n; ++b) {
        const XRow x = x_row<T>(a, 0, block + b);
        DotSink<Form, T::kBlockValues> sink(x);
        unpack_block<T>(*a.grids, panel.at(b, 0), sink);
#pragma GCC unroll 2
        for (int t = 0; t < kTerms; ++t) {
          const Vec::Float dx = Vec::all_float(x.scale[t]);
          acc = Vec::fma(Vec::to_float(sink.sum(t)), Vec::mul(panel.d(b, 0), dx), acc);
          if constexpr (Form::kMin) {
            acc = Vec::fnma(Vec::to_float(sink.min_sum(t)), Vec::mul(panel.dmin(b, 0), dx), acc);
          }
          const int done = (block + b) * kTerms + t + 1;
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
  constexpr int kTerms = kTermsABlock<T>;
  for (int b = 0; b < n_blocks; ++b) {
    for (int lane = 0; lane < Tile::kRows; lane += Vec::kLanes) {
#pragma GCC unroll 2
      for (int t = 0; t < kTerms; ++t) {
        Vec::store_float(tile.d[b * kTerms + t] + lane, panel.d(b, lane));
        if constexpr (T::Form::kMin) {
          Vec::store_float(tile.dmin[b * kTerms + t] + lane, panel.dmin(b, lane));
        }
      }
      TileSink sink{tile.code[b * (T::kBlockValues / 4)][lane],
                    tile.scale[b * (T::kBlockValues / T::Form::kGroup)] + lane,
                    tile.min[b * (T::kBlockValues / 32)][lane]};
      unpack_block<T>(grids, panel.at(b, lane), sink);
    }
  }
}

template <class T, class Panel>
void multiply_tiles(const DotArgs& a, int first_x, int n_x, const Segments& segments) {
  constexpr int kChunk = Tile::kMaxCols / T::kBlockValues;
  constexpr int kTerms = kTermsABlock<T>;
  const int n_blocks = a.cols / T::kBlockValues;
  Tile tile;
  Panel panel;
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
  constexpr int kChunk = Tile::kMaxCols / T::kBlockValues;
  const Segments segments(a.cols / T::Form::kValues);
  if (a.n_rows == 1) {
    if (a.tiles) {
      multiply_one<T, TilePanel<T>, INT32_MAX / 2>(a, segments);
    } else {
      multiply_one<T, RowPanel<T, Vec::kLanes, kChunk>, kChunk>(a, segments);
    }
    return;
  }
  for (int first_x = 0; first_x < a.n_rows; first_x += kMaxXRows) {
    const int n_x = a.n_rows - first_x < kMaxXRows ? a.n_rows - first_x : kMaxXRows;
    if (a.tiles) {
      multiply_tiles<T, TilePanel<T>>(a, first_x, n_x, segments);
    } else {
      multiply_tiles<T, RowPanel<T, Tile::kRows, kChunk>>(a, first_x, n_x, segments);
    }
  }
}
