// Panels of 16 weight rows: take apart what fits the tile, multiply, next columns.

template <class T>
concept HasGrid = requires {
  &T::look_up;
};

// d and dmin of n_blocks blocks from offset `at` of the rows, one row a lane.
template <class T, int offset>
inline void put_block_scales(const uint8_t* const* row, size_t at, int n_blocks, float factor,
                             float (*out)[Tile::kRows]) {
  alignas(64) uint16_t half[Tile::kMaxTerms][Tile::kRows];
  for (int r = 0; r < Tile::kRows; ++r) {
    const uint8_t* p = row[r] + at + offset;
    for (int b = 0; b < n_blocks; ++b) __builtin_memcpy(&half[b][r], p + b * T::kBlockBytes, 2);
  }
  constexpr int kTerms = T::kBlockValues / T::Form::kValues;
  for (int b = 0; b < n_blocks; ++b) {
    for (int lane = 0; lane < Tile::kRows; lane += Vec::kLanes) {
      const Vec::Float d = Vec::mul(Vec::load_half(half[b] + lane), Vec::all_float(factor));
      for (int t = 0; t < kTerms; ++t) Vec::store_float(out[b * kTerms + t] + lane, d);
    }
  }
}

template <class T>
void unpack_tile(const DotGrids* grids, const uint8_t* const* row, int first_block, int n_blocks,
                 Tile& tile) {
  const size_t first = static_cast<size_t>(first_block) * T::kBlockBytes;
  put_block_scales<T, T::kD>(row, first, n_blocks, T::kDFactor, tile.d);
  if constexpr (T::kDmin >= 0) {
    put_block_scales<T, T::kDmin>(row, first, n_blocks, T::kDminFactor, tile.dmin);
  }
  for (int b = 0; b < n_blocks; ++b) {
    const size_t at = first + static_cast<size_t>(b) * T::kBlockBytes;
    const auto place = [&](int part) {
      return TileAt{tile.code[b * (T::kBlockValues / 4)][part * Vec::kLanes],
                    tile.scale[b * (T::kBlockValues / T::Form::kGroup)] + part * Vec::kLanes,
                    tile.min[b * (T::kBlockValues / 32)][part * Vec::kLanes]};
    };
    constexpr int kParts = Tile::kRows / Vec::kLanes;
    if constexpr (HasGrid<T>) {
      GridCodes codes;
      for (int r = 0; r < Tile::kRows; ++r) T::look_up(*grids, row[r] + at, codes.row[r]);
      for (int part = 0; part < kParts; ++part) {
        turn_grid_codes(codes, part, place(part));
        T::put_all_scales(row + part * Vec::kLanes, at, place(part));
      }
    } else {
      for (int part = 0; part < kParts; ++part) {
        T::unpack(row + part * Vec::kLanes, at, place(part));
      }
    }
  }
}

inline float* result_row(const DotArgs& a, int i) {
  return a.y + static_cast<int64_t>(a.y_index ? a.y_index[i] : i) * a.y_stride;
}

// Rows of activations that share one unpacked tile: their codes stay in the second-level cache.
constexpr int kMaxXRows = 64;

template <class T>
void multiply_panel(const DotArgs& a, int first_row, int n_weight_rows, int first_x, int n_x,
                    const Segments& segments, Tile& tile) {
  using Form = typename T::Form;
  const int n_blocks = a.cols / T::kBlockValues;
  constexpr int kTerms = T::kBlockValues / Form::kValues;
  constexpr int kChunk = Tile::kMaxCols / T::kBlockValues;
  const uint8_t* row[Tile::kRows];
  for (int r = 0; r < Tile::kRows; ++r) {  // missing rows repeat the last; nobody reads their lanes
    const int o = first_row + (r < n_weight_rows ? r : n_weight_rows - 1);
    row[r] = a.w + static_cast<size_t>(o) * a.w_row_bytes;
  }
  Partial partial[kMaxXRows];
  XRow x[kMaxXRows];
  for (int i = 0; i < n_x; ++i) {
    for (int r = 0; r < Tile::kRows; ++r) partial[i].segment[r] = partial[i].total[r] = 0;
  }
  for (int block = 0; block < n_blocks; block += kChunk) {
    const int n = n_blocks - block < kChunk ? n_blocks - block : kChunk;
    unpack_tile<T>(a.grids, row, block, n, tile);
    const int64_t col = static_cast<int64_t>(block) * T::kBlockValues;
    for (int i = 0; i < n_x; ++i) {
      const int64_t xr = a.x_index ? a.x_index[first_x + i] : first_x + i;
      x[i] = {a.q + xr * a.cols + col, a.scale + (xr * a.cols + col) / Form::kValues,
              a.sums + (xr * a.cols + col) / 16};
    }
    multiply_tile<Form>(tile, block * kTerms, (block + n) * kTerms, segments, x, n_x, partial);
  }
  for (int i = 0; i < n_x; ++i) {
    float* y = result_row(a, first_x + i) + first_row;
    for (int r = 0; r < n_weight_rows; ++r) y[r] = partial[i].total[r];
  }
}

template <class T>
void multiply(const DotArgs& a) {
  const Segments segments(a.cols / T::Form::kValues);
  Tile tile;
  for (int first_x = 0; first_x < a.n_rows; first_x += kMaxXRows) {
    const int n_x = a.n_rows - first_x < kMaxXRows ? a.n_rows - first_x : kMaxXRows;
    for (int o = a.first_row; o < a.end_row; o += Tile::kRows) {
      const int n_w = a.end_row - o < Tile::kRows ? a.end_row - o : Tile::kRows;
      multiply_panel<T>(a, o, n_w, first_x, n_x, segments, tile);
    }
  }
}
