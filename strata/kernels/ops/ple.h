#pragma once

#include "strata/kernels/ops/op.h"
#include "strata/kernels/ops/rows.h"

namespace strata::kernels {

// Gates the n-gram value by the match of key and residual, per stream s:
//   a = dot(rms(key_s) * norm_key, rms(residual_s) * norm_query) / sqrt(width)
//   z_s = sigm(sign(a) sqrt(max(|a|, 1e-6))) * value;   normed = rms of each z_s, times norm_conv
// Shapes: key, z, normed [max_rows, streams * width]; value [max_rows, width];
//         residual [max_rows, streams, width]; norms [streams * width].
struct PleMix {
  static constexpr const char* kName = "ple_mix";
  const int32_t* n_rows = nullptr;
  View<const float> key, value, residual;
  const float* norm_key = nullptr;
  const float* norm_query = nullptr;
  const float* norm_conv = nullptr;
  float eps = 0;
  View<float> z, normed;
};
void check(const PleMix& args);

// A causal depthwise convolution over the tokens of each sequence, then silu:
//   y[t, c] = silu(sum_k w[c, k] x[t - dilation (taps - 1 - k), c])
// and out = y, or out += z + y where z is given. Rows before the sequence come from the tail, whose
// other side and log are written.
// Shapes: x, z, out [max_rows, channels]; w [channels, taps]; tail depth = dilation * (taps - 1).
struct Conv {
  static constexpr const char* kName = "conv";
  Rows rows;
  View<const float> x;
  const float* w = nullptr;
  int taps = 0, dilation = 1;
  View<const float> z;
  Tail tail;
  View<float> out;
};
void check(const Conv& args);

// Commits kept[seq] rows of a window: the tail's other side becomes the last rows of (committed
// side, then log[0..kept)). Sequences with kept < 0 are left alone.
struct TailCommit {
  static constexpr const char* kName = "tail_commit";
  Rows rows;
  const int32_t* kept = nullptr;  // [max_seqs]
  Tail tail;
};
void check(const TailCommit& args);

}  // namespace strata::kernels
