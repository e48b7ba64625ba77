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

// Sums of one row of activations with 16 weight rows.
struct Partial {
  alignas(64) float segment[Tile::kRows];
  alignas(64) float total[Tile::kRows];
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

// The exact integer sum of term t for n rows of activations.
template <class Form, int n>
STRATA_INLINE void term_sum(const Tile& tile, int part, int t, const XRow* x, Vec::Int* sum) {
  constexpr int kGroups = Form::kValues / Form::kGroup;
  constexpr int kSteps = Form::kGroup / 4;
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) sum[r] = Vec::zero();
#pragma GCC unroll 2
  for (int g = 0; g < kGroups; ++g) {
    const int group = t * kGroups + g;
    Vec::Sum<(Form::kAdds < kSteps ? Form::kAdds : kSteps), Form::kSigned> acc[n];
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) acc[r].start(group_start<Form>(x[r].sums, group));
#pragma GCC unroll 8
    for (int k = 0; k < kSteps; ++k) {
      const Vec::Int code = Vec::load(tile.code[group * kSteps + k][part * Vec::kLanes]);
#pragma GCC unroll 8
      for (int r = 0; r < n; ++r) {
        acc[r].step(k, code, x[r].q + group * Form::kGroup + 4 * k);
      }
    }
    if constexpr (Form::kScaled) {
      const Vec::Int scale = Vec::load(tile.scale[group] + part * Vec::kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < n; ++r) {
        sum[r] = Vec::add32(sum[r], Vec::mul32(acc[r].finish(), scale));
      }
    } else {
#pragma GCC unroll 8
      for (int r = 0; r < n; ++r) sum[r] = acc[r].finish();
    }
  }
}

// The exact integer sum of min * q of term t.
template <class Form, int n>
STRATA_INLINE void min_sum(const Tile& tile, int part, int t, const XRow* x, Vec::Int* sum) {
  constexpr int kPairs = Form::kValues / 32;
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) sum[r] = Vec::zero();
#pragma GCC unroll 8
  for (int g = 0; g < kPairs; ++g) {
    const int pair = t * kPairs + g;
    const Vec::Int min =
        Form::kScaled ? Vec::load(tile.min[pair][part * Vec::kLanes]) : Vec::all16(1);
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) {
      sum[r] = Vec::add_pairs(sum[r], min, Vec::broadcast4(x[r].sums + 2 * pair));
    }
  }
}

// Adds the terms [first, end) of the row, which lie in the tile from its term 0 on, to the partial
// sums of n rows of activations.
template <class Form, int n>
void add_terms(const Tile& tile, int part, int first, int end, const Segments& segments,
               const XRow* x, Partial* partial) {
  using Float = Vec::Float;
  int s = 0;
  while (s < kSegments && segments.end[s] <= first) ++s;
  Float acc[n], total[n];
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) {
    acc[r] = Vec::load_float(partial[r].segment + part * Vec::kLanes);
    total[r] = Vec::load_float(partial[r].total + part * Vec::kLanes);
  }
  int t = first;
  while (t < end) {
    const int stop = segments.end[s] < end ? segments.end[s] : end;
    for (; t < stop; ++t) {
      const int i = t - first;
      Vec::Int sum[n];
      term_sum<Form, n>(tile, part, i, x, sum);
      const Float d = Vec::load_float(tile.d[i] + part * Vec::kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < n; ++r) {
        const Float scale = Vec::mul(d, Vec::all_float(x[r].scale[i]));
        acc[r] = Vec::fma(Vec::to_float(sum[r]), scale, acc[r]);
      }
      if constexpr (Form::kMin) {
        min_sum<Form, n>(tile, part, i, x, sum);
        const Float dmin = Vec::load_float(tile.dmin[i] + part * Vec::kLanes);
#pragma GCC unroll 8
        for (int r = 0; r < n; ++r) {
          const Float scale = Vec::mul(dmin, Vec::all_float(x[r].scale[i]));
          acc[r] = Vec::fnma(Vec::to_float(sum[r]), scale, acc[r]);
        }
      }
    }
    for (; s < kSegments && segments.end[s] <= t; ++s) {
      // The first segment starts the sum: +0 + -0 would lose a sign.
#pragma GCC unroll 8
      for (int r = 0; r < n; ++r) {
        total[r] = s == 0 ? acc[r] : Vec::add(total[r], acc[r]);
        acc[r] = Vec::zero_float();
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) {
    Vec::store_float(partial[r].segment + part * Vec::kLanes, acc[r]);
    Vec::store_float(partial[r].total + part * Vec::kLanes, total[r]);
  }
}

template <class Form>
void multiply_tile(const Tile& tile, int first, int end, const Segments& segments, const XRow* x,
                   int n, Partial* partial) {
  for (int part = 0; part < Tile::kRows / Vec::kLanes; ++part) {
    int r = 0;
    for (; r + 8 <= n; r += 8) {
      add_terms<Form, 8>(tile, part, first, end, segments, x + r, partial + r);
    }
    if (n & 4) {
      add_terms<Form, 4>(tile, part, first, end, segments, x + r, partial + r);
      r += 4;
    }
    if (n & 2) {
      add_terms<Form, 2>(tile, part, first, end, segments, x + r, partial + r);
      r += 2;
    }
    if (n & 1) add_terms<Form, 1>(tile, part, first, end, segments, x + r, partial + r);
  }
}
