// Tile times rows of activations.

// What a type's terms look like.
//   kValues   values a term
//   kGroup    values that share a scale, 16 or 32
//   kScaled   integer scales inside a term
//   kMin      terms have a min
//   kOffset   codes are stored with this much added
//   kAdds     AVX2: that many products of code and x, two each, fit 16 bits
//   kSigned   AVX2: codes are signed
template <int values, int group, bool scaled, bool min, int offset, int adds, bool is_signed>
struct TermForm {
  static constexpr int kValues = values, kGroup = group, kOffset = offset, kAdds = adds;
  static constexpr bool kScaled = scaled, kMin = min, kSigned = is_signed;
};

// One row of activations, from the first column of the tile on.
struct XRow {
  const int8_t* q;
  const float* scale;
  const int16_t* sums;
  STRATA_INLINE void next(int values, int terms) {
    q += values;
    scale += terms;
    sums += values / 16;
  }
};

// Sums of one row of activations with the weight rows of a pair of tiles.
struct Partial {
  alignas(64) float segment[TilePair::kRows];
  alignas(64) float total[TilePair::kRows];
};

// -offset times the sum of the group's codes of x, or zero.
template <class Form>
STRATA_INLINE Vec::Int group_start(const int16_t* sums, int group) {
  if constexpr (Form::kOffset == 0) {
    return Vec::zero();
  } else if constexpr (Form::kGroup == 32) {
    return Vec::add_pairs(Vec::zero(), Vec::all16(-Form::kOffset),
                          Vec::broadcast4(sums + 2 * group));
  } else {
    const int half = group % 2 == 0 ? -Form::kOffset & 0xFFFF : -Form::kOffset * 65536;
    return Vec::add_pairs(Vec::zero(), Vec::all32(half), Vec::broadcast4(sums + group / 2 * 2));
  }
}

// The products of nw vectors of weight rows, from vector `part` of the pair on, with nx rows of
// activations: each value of x that is loaded serves nw products, each of codes nx. nw * nx sums in
// registers also hide the four cycles that a product takes.
template <class Form, int nw, int nx>
struct TileProduct {
  static constexpr int kSums = nw * nx;
  const TilePair& pair;
  int part;
  const XRow* x;

  STRATA_INLINE const Tile& tile(int w) const {
    return pair.tile[(part + w) * Vec::kLanes / Tile::kRows];
  }
  STRATA_INLINE int lane(int w) const { return (part + w) * Vec::kLanes % Tile::kRows; }

  // The exact integer sums of term t.
  STRATA_INLINE void term_sum(int t, Vec::Int* sum) const {
    constexpr int kGroups = Form::kValues / Form::kGroup;
    constexpr int kSteps = Form::kGroup / 4;
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
      const int group = t * kGroups + g;
      Vec::Sum<(Form::kAdds < kSteps ? Form::kAdds : kSteps), Form::kSigned> acc[kSums];
#pragma GCC unroll 8
      for (int r = 0; r < nx; ++r) {
        const Vec::Int start = group_start<Form>(x[r].sums, group);
#pragma GCC unroll 2
        for (int w = 0; w < nw; ++w) acc[r * nw + w].start(start);
      }
#pragma GCC unroll 8
      for (int k = 0; k < kSteps; ++k) {
        Vec::Int code[nw];
#pragma GCC unroll 2
        for (int w = 0; w < nw; ++w) code[w] = Vec::load(tile(w).code[group * kSteps + k][lane(w)]);
#pragma GCC unroll 8
        for (int r = 0; r < nx; ++r) {
          const int8_t* q = x[r].q + group * Form::kGroup + 4 * k;
          if constexpr (nw == 1) {
            acc[r].step(k, code[0], q);
          } else {
            const Vec::Int four = Vec::broadcast4(q);
#pragma GCC unroll 2
            for (int w = 0; w < nw; ++w) acc[r * nw + w].step(k, code[w], four);
          }
        }
      }
#pragma GCC unroll 2
      for (int w = 0; w < nw; ++w) {
        Vec::Int scale;
        if constexpr (Form::kScaled) scale = Vec::load(tile(w).scale[group] + lane(w));
#pragma GCC unroll 8
        for (int i = w; i < kSums; i += nw) {
          if constexpr (Form::kScaled) {
            const Vec::Int scaled = Vec::mul32(acc[i].finish(), scale);
            sum[i] = g == 0 ? scaled : Vec::add32(sum[i], scaled);
          } else {
            sum[i] = acc[i].finish();
          }
        }
      }
    }
  }

  // The exact integer sums of min * q of term t.
  STRATA_INLINE void min_sum(int t, Vec::Int* sum) const {
    constexpr int kPairs = Form::kValues / 32;
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sum[i] = Vec::zero();
#pragma GCC unroll 8
    for (int g = 0; g < kPairs; ++g) {
      const int two = t * kPairs + g;
#pragma GCC unroll 8
      for (int r = 0; r < nx; ++r) {
        const Vec::Int sums = Vec::broadcast4(x[r].sums + 2 * two);
#pragma GCC unroll 2
        for (int w = 0; w < nw; ++w) {
          const Vec::Int min = Form::kScaled ? Vec::load(tile(w).min[two][lane(w)]) : Vec::all16(1);
          sum[r * nw + w] = Vec::add_pairs(sum[r * nw + w], min, sums);
        }
      }
    }
  }
};

// Adds the terms [first, end) of the row, which lie in the tiles from their term 0 on, to the
// partial sums of nx rows of activations.
template <class Form, int nw, int nx>
void add_terms(const TilePair& pair, int part, int first, int end, const Segments& segments,
               const XRow* x, Partial* partial) {
  using Float = Vec::Float;
  const TileProduct<Form, nw, nx> product{pair, part, x};
  constexpr int kSums = nw * nx;
  int s = 0;
  while (s < kSegments && segments.end[s] <= first) ++s;
  Float acc[kSums], total[kSums];
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) {
    const int at = (part + i % nw) * Vec::kLanes;
    acc[i] = Vec::load_float(partial[i / nw].segment + at);
    total[i] = Vec::load_float(partial[i / nw].total + at);
  }
  int t = first;
  while (t < end) {
    const int stop = segments.end[s] < end ? segments.end[s] : end;
    for (; t < stop; ++t) {
      const int in_tile = t - first;
      Vec::Int sum[kSums];
      product.term_sum(in_tile, sum);
#pragma GCC unroll 12
      for (int i = 0; i < kSums; ++i) {
        const int w = i % nw;
        const Float d = Vec::load_float(product.tile(w).d[in_tile] + product.lane(w));
        const Float scale = Vec::mul(d, Vec::all_float(x[i / nw].scale[in_tile]));
        acc[i] = Vec::fma(Vec::to_float(sum[i]), scale, acc[i]);
      }
      if constexpr (Form::kMin) {
        product.min_sum(in_tile, sum);
#pragma GCC unroll 12
        for (int i = 0; i < kSums; ++i) {
          const int w = i % nw;
          const Float dmin = Vec::load_float(product.tile(w).dmin[in_tile] + product.lane(w));
          const Float scale = Vec::mul(dmin, Vec::all_float(x[i / nw].scale[in_tile]));
          acc[i] = Vec::fnma(Vec::to_float(sum[i]), scale, acc[i]);
        }
      }
    }
    for (; s < kSegments && segments.end[s] <= t; ++s) {
      // The first segment starts the sum: +0 + -0 would lose a sign.
#pragma GCC unroll 12
      for (int i = 0; i < kSums; ++i) {
        total[i] = s == 0 ? acc[i] : Vec::add(total[i], acc[i]);
        acc[i] = Vec::zero_float();
      }
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) {
    const int at = (part + i % nw) * Vec::kLanes;
    Vec::store_float(partial[i / nw].segment + at, acc[i]);
    Vec::store_float(partial[i / nw].total + at, total[i]);
  }
}

template <class Form>
void multiply_pair(const TilePair& pair, int n_weight_rows, int first, int end,
                   const Segments& segments, const XRow* x, int n, Partial* partial) {
  constexpr int nw = Vec::kProductVectors, nx = Vec::kProductRows;
  for (int part = 0; part * Vec::kLanes < n_weight_rows; part += nw) {
    int r = 0;
    for (; r + nx <= n; r += nx) {
      add_terms<Form, nw, nx>(pair, part, first, end, segments, x + r, partial + r);
    }
    if (r + 2 <= n) {
      add_terms<Form, nw, 2>(pair, part, first, end, segments, x + r, partial + r);
      r += 2;
    }
    if (r < n) add_terms<Form, nw, 1>(pair, part, first, end, segments, x + r, partial + r);
  }
}
