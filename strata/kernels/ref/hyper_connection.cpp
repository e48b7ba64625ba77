#include <cstdint>
#include <vector>

#include "strata/kernels/ref/ref.h"

namespace strata::kernels::ref {
namespace {
#include "strata/kernels/canonical_math.inl"
}  // namespace

void hc_read(const HcRead& a) {
  const int64_t streams = a.residual.extent(1), width = a.residual.extent(2);
  const float inverse = 1.0f / static_cast<float>(streams);
  std::vector<float> n(static_cast<size_t>(streams * width)), m(n.size());
  std::vector<float> lo(static_cast<size_t>(a.down.rows));
  for (int row = 0; row < *a.n_rows; ++row) {
    const float* h = a.residual.row(row);
    for (int64_t s = 0; s < streams; ++s) {
      const float r = inverse_rms_c(h + s * width, width, a.eps);
      for (int64_t i = s * width; i < (s + 1) * width; ++i) n[i] = h[i] * r * a.norm[i];
    }
    multiply_row(a.down, n.data(), lo.data());
    for (float& v : lo) v = silu_c(v * inverse);
    multiply_row(a.up, lo.data(), m.data());
    for (int64_t i = 0; i < width; ++i) {
      float sum = 0;
      for (int64_t s = 0; s < streams; ++s) {
        sum = __builtin_fmaf(sigmoid_c(m[s * width + i]), n[s * width + i], sum);
      }
      a.u.row(row)[i] = sum * inverse;
    }
    if (!a.inject) continue;
    multiply_row(a.inject, n.data(), a.inj.row(row));
    for (int64_t s = 0; s < streams; ++s) {
      a.inj.row(row)[s] = 2.0f * sigmoid_c(a.inj.row(row)[s] * inverse);
    }
  }
}

void hc_write(const HcWrite& a) {
  const int64_t streams = a.residual.extent(1), width = a.residual.extent(2);
  for (int row = 0; row < *a.n_rows; ++row) {
    for (int64_t s = 0; s < streams; ++s) {
      float* h = a.residual.row(row) + s * width;
      const float inj = a.inj.row(row)[s];
      for (int64_t i = 0; i < width; ++i) h[i] = __builtin_fmaf(inj, a.y.row(row)[i], h[i]);
    }
  }
}

void draft_input(const DraftInput& a) {
  const int64_t streams = a.residual.extent(1), width = a.residual.extent(2);
  for (int row = 0; row < *a.n_rows; ++row) {
    const float* e = a.e.row(row);
    const float* h = a.residual.row(row);
    const float re = inverse_rms_c(e, width, a.eps);
    const float full = a.per_stream ? 0 : inverse_rms_c(h, streams * width, a.eps);
    for (int64_t s = 0; s < streams; ++s) {
      const float* hs = h + s * width;
      const float rh = a.per_stream ? inverse_rms_c(hs, width, a.eps) : full;
      float* out = a.out.row(row) + s * 2 * width;
      for (int64_t i = 0; i < width; ++i) {
        out[i] = e[i] * re * a.enorm[i];
        out[width + i] = hs[i] * rh * a.hnorm[s * width + i];
      }
    }
  }
}

}  // namespace strata::kernels::ref
