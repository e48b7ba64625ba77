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

constexpr int kAllBlocks = INT32_MAX / 2;

// Blocks of a tile whose code is laid out one after the other, so that an instruction meets
// addresses more than 2 KiB apart: the prefetcher that learns the steps of single instructions
// would get in the way of ours (Q8_0 on Zen 5: 62 % of the read bandwidth with it, 90 % without).
// The numbers divide the blocks of 640 and of 2560 columns.
template <class T, int n>
constexpr int blocks_together() {
  if (T::kBlockBytes * Tile::kRows >= 2048) return 1;
  if (T::kBlockValues == 256) return n == 1 ? 2 : 1;  // with more rows the products are the bound
  if (T::kBlockValues == 64 && n == 4) return 5;      // Q2_0: likewise
  return T::kBlockBytes > 32 ? 5 : 10;
}

// One block of Vec::kLanes rows.
template <class T>
STRATA_INLINE void unpack_block(const DotGrids& grids, const auto& rows, auto& out) {
  if constexpr (requires { T::unpack(grids, rows, out); }) {
    T::unpack(grids, rows, out);
  } else {
    T::unpack(rows, out);
  }
}

// The products of up to n rows of activations with Vec::kLanes weight rows from o on.
template <class T, int n, int max_blocks>
STRATA_INLINE void multiply_group(const DotArgs& a, const Segments& segments, int o, int first_x,
                                  int n_x, auto& panel) {
  using Form = typename T::Form;
  constexpr int kTerms = kTermsABlock<T>;
  constexpr int kRows = Vec::kLanes;
  constexpr int kTogether = max_blocks == kAllBlocks ? blocks_together<T, n>() : 1;
  const int n_w = a.end_row - o < kRows ? a.end_row - o : kRows;
  const int n_blocks = a.cols / T::kBlockValues;
  Vec::Float acc[n], total[n];
  XRow x[n];
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) {
    acc[r] = total[r] = Vec::zero_float();
    x[r] = x_row<T>(a, first_x + (r < n_x ? r : 0), 0);
  }
  int s = 0;
  while (segments.end[s] == 0) ++s;  // empty ones add +0 to +0
  const auto one_block = [&](int block, int b) __attribute__((always_inline)) {
    DotSink<Form, T::kBlockValues, n> sink(x);
    unpack_block<T>(*a.grids, panel.at(b, 0), sink);
    const Vec::Float d = panel.d(b, 0);
#pragma GCC unroll 2
    for (int t = 0; t < kTerms; ++t) {
#pragma GCC unroll 8
      for (int r = 0; r < n; ++r) {
        const Vec::Float dx = Vec::all_float(x[r].scale[t]);
        acc[r] = Vec::fma(Vec::to_float(sink.sum[t][r]), Vec::mul(d, dx), acc[r]);
        if constexpr (Form::kMin) {
          acc[r] =
              Vec::fnma(Vec::to_float(sink.min_sum(t, r)), Vec::mul(panel.dmin(b, 0), dx), acc[r]);
        }
      }
      const int done = (block + b) * kTerms + t + 1;
      for (; s < kSegments && segments.end[s] == done; ++s) {
        // The first segment starts the sum: +0 + -0 would lose a sign.
#pragma GCC unroll 8
        for (int r = 0; r < n; ++r) {
          total[r] = s == 0 ? acc[r] : Vec::add(total[r], acc[r]);
          acc[r] = Vec::zero_float();
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) x[r].next(T::kBlockValues, kTerms);
  };
  for (int block = 0; block < n_blocks; block += max_blocks) {
    const int n_here = n_blocks - block < max_blocks ? n_blocks - block : max_blocks;
    panel.set(a, o, n_w, block, n_here);
    int b = 0;
    for (; b + kTogether <= n_here; b += kTogether) {
#pragma GCC unroll 10
      for (int i = 0; i < kTogether; ++i) one_block(block, b + i);
    }
    for (; b < n_here; ++b) one_block(block, b);
  }
  for (int r = 0; r < n_x; ++r) {
    float* out = result_row(a, first_x + r) + o;
    if (n_w == kRows) {
      Vec::store_float_anywhere(out, total[r]);
    } else {
      alignas(64) float y[kRows];
      Vec::store_float(y, total[r]);
      for (int i = 0; i < n_w; ++i) out[i] = y[i];
    }
  }
}

// Up to n rows of activations; more of them in turns, while the weight rows are in the caches.
template <class T, int n, int max_blocks, class Panel>
void multiply_few(const DotArgs& a, const Segments& segments) {
  Panel panel;
  for (int o = a.first_row; o < a.end_row; o += Vec::kLanes) {
    for (int i = 0; i < a.n_rows; i += n) {
      multiply_group<T, n, max_blocks>(a, segments, o, i, a.n_rows - i < n ? a.n_rows - i : n,
                                       panel);
    }
  }
}

// Several rows of activations share one unpacked tile; their codes stay in the second-level cache.
constexpr int kMaxXRows = 128;

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

// Asks for the first blocks of the pair of tiles at row o.
template <class T, class Panel>
STRATA_INLINE void ask_for_tiles(const DotArgs& a, int o, int n_blocks) {
  if constexpr (requires { Panel::ask(a, o, n_blocks); }) {
    for (int r = 0; r < TilePair::kRows && o + r < a.end_row; r += Tile::kRows) {
      Panel::ask(a, o + r, n_blocks);
    }
  }
}

template <class T, class Panel>
void multiply_tiles(const DotArgs& a, int first_x, int n_x, const Segments& segments) {
  constexpr int kChunk = Tile::kMaxCols / T::kBlockValues;
  constexpr int kTerms = kTermsABlock<T>;
  const int n_blocks = a.cols / T::kBlockValues;
  TilePair pair;
  Panel panel;
  Partial partial[kMaxXRows];
  XRow x[kMaxXRows];
  for (int o = a.first_row; o < a.end_row; o += TilePair::kRows) {
    const int n_w = a.end_row - o < TilePair::kRows ? a.end_row - o : TilePair::kRows;
    for (int i = 0; i < n_x; ++i) {
      for (int r = 0; r < TilePair::kRows; r += Vec::kLanes) {
        Vec::store_float(partial[i].segment + r, Vec::zero_float());
        Vec::store_float(partial[i].total + r, Vec::zero_float());
      }
    }
    for (int block = 0; block < n_blocks; block += kChunk) {
      const int n = n_blocks - block < kChunk ? n_blocks - block : kChunk;
      for (int r = 0; r < TilePair::kRows; r += Tile::kRows) {
        // Without a second tile its place holds the first once more: nobody reads the products.
        const int from = r < n_w ? r : 0;
        panel.set(a, o + from, n_w - from < Tile::kRows ? n_w - from : Tile::kRows, block, n);
        unpack_tile<T>(*a.grids, n, panel, pair.tile[r / Tile::kRows]);
      }
      for (int i = 0; i < n_x; ++i) x[i] = x_row<T>(a, first_x + i, block);
      // A tile asks for its own next lines; nobody asks for the first ones of the next.
      if (block + n == n_blocks) ask_for_tiles<T, Panel>(a, o + TilePair::kRows, kChunk);
      multiply_pair<typename T::Form>(pair, n_w, block * kTerms, (block + n) * kTerms, segments, x,
                                      n_x, partial);
    }
    for (int i = 0; i < n_x; ++i) {
      float* y = result_row(a, first_x + i) + o;
      int r = 0;
      for (; r + Vec::kLanes <= n_w; r += Vec::kLanes) {
        Vec::store_float_anywhere(y + r, Vec::load_float(partial[i].total + r));
      }
      for (; r < n_w; ++r) y[r] = partial[i].total[r];
    }
  }
}

template <class T, class Panel>
void multiply_many(const DotArgs& a, const Segments& segments) {
  for (int first_x = 0; first_x < a.n_rows; first_x += kMaxXRows) {
    const int n_x = a.n_rows - first_x < kMaxXRows ? a.n_rows - first_x : kMaxXRows;
    multiply_tiles<T, Panel>(a, first_x, n_x, segments);
  }
}

template <class T>
void multiply(const DotArgs& a) {
  constexpr int kChunk = Tile::kMaxCols / T::kBlockValues;
  const Segments segments(a.cols / T::Form::kValues);
  if (a.tiles) {
    if (a.n_rows == 1) return multiply_few<T, 1, kAllBlocks, TilePanel<T>>(a, segments);
    if constexpr (T::kFewRows > 1) {
      if (a.n_rows == 2) return multiply_few<T, 2, kAllBlocks, TilePanel<T>>(a, segments);
      // Windows of guesses: a group that is not full costs as much as a full one.
      if (a.n_rows == 3) return multiply_few<T, 3, kAllBlocks, TilePanel<T>>(a, segments);
      if (a.n_rows <= T::kFewRows) return multiply_few<T, 4, kAllBlocks, TilePanel<T>>(a, segments);
    }
    return multiply_many<T, TilePanel<T>>(a, segments);
  }
  // Turning rows costs as much as unpacking: from two rows of activations on it is done once.
  if (a.n_rows == 1) {
    return multiply_few<T, 1, kChunk, RowPanel<T, Vec::kLanes, kChunk>>(a, segments);
  }
  multiply_many<T, RowPanel<T, Tile::kRows, kChunk>>(a, segments);
}

template <class T>
constexpr void add(DotTable& table, int type) {
  table.matmul[type] = multiply<T>;
  table.crossed[type] = T::kCrossed;
}
