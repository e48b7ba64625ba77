#pragma once

#include "strata/kernels/ops/op.h"
#include "strata/kernels/ops/rows.h"

namespace strata::kernels {

// Reads the block input from the residual streams (docs/model.md, hyper-connections):
//   n = rms of each stream, times norm;  lo = silu(down n / streams);  m = sigm(up lo)
//   u = mean over streams of m * n;      inj = 2 sigm(inject n / streams)
// Shapes: residual [max_rows, streams, width]; norm [streams * width]; u [max_rows, width];
//         inj [max_rows, streams], unused where inject is empty.
struct HcRead {
  static constexpr const char* kName = "hc_read";
  const int32_t* n_rows = nullptr;
  View<const float> residual;
  const float* norm = nullptr;
  Weight down, up, inject;
  float eps = 0;
  View<float> u, inj;
  View<std::byte> scratch;
};
void check(const HcRead& args);

// residual[s] += inj[s] * y. Shapes as above, y [max_rows, width].
struct HcWrite {
  static constexpr const char* kName = "hc_write";
  const int32_t* n_rows = nullptr;
  View<const float> inj, y;
  View<float> residual;
};
void check(const HcWrite& args);

// The input of the draft layer: out[row, s] = [ rms(e; enorm) ; rms(R; hnorm)_s ].
// Shapes: e [max_rows, width]; residual [max_rows, streams, width];
//         out [max_rows, streams, 2 * width].
// per_stream: one root mean square for each stream, else one over the full row.
struct DraftInput {
  static constexpr const char* kName = "draft_input";
  const int32_t* n_rows = nullptr;
  View<const float> e, residual;
  const float* enorm = nullptr;
  const float* hnorm = nullptr;
  float eps = 0;
  bool per_stream = false;
  View<float> out;
};
void check(const DraftInput& args);

}  // namespace strata::kernels
