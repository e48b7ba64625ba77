// Takes a block apart and multiplies it with n rows of activations on the way: for few rows, where
// an unpacked tile would cost more than it saves. A group's sums start at its first code and are
// folded into the term at its last, so that few registers are alive at a time.
template <class Form, int block_values, int n>
struct DotSink {
  static constexpr int kGroups = block_values / Form::kGroup;
  static constexpr int kSteps = Form::kGroup / 4;
  static constexpr int kTerms = block_values / Form::kValues;
  using Sum = Vec::Sum<(Form::kAdds < kSteps ? Form::kAdds : kSteps), Form::kSigned>;
  const XRow* x;  // [n]
  Sum acc[n];
  Vec::Int scale[Form::kScaled ? kGroups : 1];
  Vec::Int sum[kTerms][n];
  Vec::Int min[n];

  STRATA_INLINE explicit DotSink(const XRow* at) : x(at) {
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) min[r] = Vec::zero();
  }
  STRATA_INLINE void put_code(int k, Vec::Int v) {
    const int step = k % kSteps;
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) {
      if (step == 0) acc[r].start(group_start<Form>(x[r].sums, k / kSteps));
      acc[r].step(step, v, x[r].q + 4 * k);
    }
    if (step == kSteps - 1) finish_group(k / kSteps);
  }
  STRATA_INLINE void put_scale(int g, Vec::Int v) { scale[g] = v; }
  STRATA_INLINE void put_min(int pair, Vec::Int v) {
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) {
      min[r] = Vec::add_pairs(min[r], v, Vec::broadcast4(x[r].sums + 2 * pair));
    }
  }
  STRATA_INLINE void finish_group(int g) {
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) {
      if constexpr (Form::kScaled) {
        const Vec::Int scaled = Vec::mul32(acc[r].finish(), scale[g]);
        sum[0][r] = g == 0 ? scaled : Vec::add32(sum[0][r], scaled);
      } else {
        sum[g][r] = acc[r].finish();
      }
    }
  }
  STRATA_INLINE Vec::Int min_sum(int t, int r) const {
    if constexpr (Form::kScaled) {
      return min[r];
    } else {
      return Vec::add_pairs(Vec::zero(), Vec::all16(1), Vec::broadcast4(x[r].sums + 2 * t));
    }
  }
};
