// Rule 4 of quant/canonical.h: 32 lanes of f32.

constexpr int kSumLanes = 32;
constexpr int kVectors = kSumLanes / Vec::kLanes;

struct F32 {
  static constexpr int kBytes = 4;
  static Vec::Float load(const uint8_t* p) { return Vec::load_f32(p); }
};
struct F16 {
  static constexpr int kBytes = 2;
  static Vec::Float load(const uint8_t* p) { return Vec::load_half(p); }
};
struct BF16 {
  static constexpr int kBytes = 2;
  static Vec::Float load(const uint8_t* p) { return Vec::load_bf16(p); }
};

// One weight row times n rows of activations.
template <class T, int n>
inline void dot_rows(const uint8_t* w, const float* const* x, int64_t cols, float* out) {
  Vec::Float acc[n][kVectors];
#pragma GCC unroll 4
  for (int r = 0; r < n; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) acc[r][v] = Vec::zero_float();
  }
  int64_t i = 0;
  for (; i + kSumLanes <= cols; i += kSumLanes) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = i + v * Vec::kLanes;
      const Vec::Float a = T::load(w + at * T::kBytes);
#pragma GCC unroll 4
      for (int r = 0; r < n; ++r) {
        acc[r][v] = Vec::fma(a, Vec::load_f32(x[r] + at), acc[r][v]);
      }
    }
  }
  if (i < cols) {  // the lanes beyond the end stay as they are
    const int rest = static_cast<int>(cols - i);
    uint8_t tail[kSumLanes * T::kBytes] = {};
    __builtin_memcpy(tail, w + i * T::kBytes, static_cast<size_t>(rest * T::kBytes));
#pragma GCC unroll 4
    for (int r = 0; r < n; ++r) {
      float x_tail[kSumLanes] = {};
      __builtin_memcpy(x_tail, x[r] + i, sizeof(float) * static_cast<size_t>(rest));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const int at = v * Vec::kLanes;
        const Vec::Float sum =
            Vec::fma(T::load(tail + at * T::kBytes), Vec::load_f32(x_tail + at), acc[r][v]);
        acc[r][v] = Vec::first_lanes(rest - at, sum, acc[r][v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < n; ++r) out[r] = Vec::tree(acc[r]);
}

template <class T>
void multiply_float(const DotArgs& a) {
  constexpr int kRows = Vec::kLanes == 16 ? 4 : 2;  // what the registers hold
  for (int o = a.first_row; o < a.end_row; ++o) {
    const uint8_t* w = a.w + static_cast<size_t>(o) * a.w_row_bytes;
    for (int i = 0; i < a.n_rows; i += kRows) {
      const int n = a.n_rows - i < kRows ? a.n_rows - i : kRows;
      const float* x[kRows];
      float sum[kRows];
      for (int r = 0; r < n; ++r) {
        x[r] = a.x + static_cast<int64_t>(a.x_index ? a.x_index[i + r] : i + r) * a.x_stride;
      }
      if (n == kRows) {
        dot_rows<T, kRows>(w, x, a.cols, sum);
      } else {
        for (int r = 0; r < n; ++r) dot_rows<T, 1>(w, x + r, a.cols, sum + r);
      }
      for (int r = 0; r < n; ++r) result_row(a, i + r)[o] = sum[r];
    }
  }
}
