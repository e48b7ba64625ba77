#include <algorithm>
#include <cstdint>
#include <vector>

#include "strata/kernels/ref/ref.h"

namespace strata::kernels::ref {
namespace {
#include "strata/kernels/canonical_math.inl"

}  // namespace

void ple_mix(const PleMix& a) {
  const int64_t streams = a.residual.extent(1), width = a.residual.extent(2);
  std::vector<float> key(static_cast<size_t>(width)), query(key.size());
  for (int row = 0; row < *a.n_rows; ++row) {
    for (int64_t s = 0; s < streams; ++s) {
      const int64_t at = s * width;
      const float* k = a.key.row(row) + at;
      const float* h = a.residual.row(row) + at;
      const float rk = inverse_rms_c(k, width, a.eps), rh = inverse_rms_c(h, width, a.eps);
      for (int64_t i = 0; i < width; ++i) {
        key[i] = k[i] * rk * a.norm_key[at + i];
        query[i] = h[i] * rh * a.norm_query[at + i];
      }
      const float dot =
          dot_c(key.data(), query.data(), width) / __builtin_sqrtf(static_cast<float>(width));
      const float size = dot < 0 ? -dot : dot;
      const float root = __builtin_sqrtf(size < 1e-6f ? 1e-6f : size);
      const float gate = sigmoid_c(dot > 0 ? root : (dot < 0 ? -root : 0.0f * dot));
      float* z = a.z.row(row) + at;
      for (int64_t i = 0; i < width; ++i) z[i] = gate * a.value.row(row)[i];
      const float rz = inverse_rms_c(z, width, a.eps);
      for (int64_t i = 0; i < width; ++i) {
        a.normed.row(row)[at + i] = z[i] * rz * a.norm_conv[at + i];
      }
    }
  }
}

void conv(const Conv& a) {
  const int64_t channels = a.x.extent(1);
  const int depth = a.dilation * (a.taps - 1);
  for (int seq = 0; seq < *a.rows.n_seqs; ++seq) {
    const int slot = a.rows.seq_slot[seq], first = a.rows.seq_first[seq];
    const int n = a.rows.seq_rows[seq], side = a.rows.side[slot];
    const float* old = a.tail.side(slot, side);
    float* next = a.tail.side(slot, 1 - side);
    // Row t of the sequence; negative: from the tail.
    const auto input = [&](int t) {
      return t >= 0 ? a.x.row(first + t) : old + static_cast<int64_t>(depth + t) * channels;
    };
    for (int t = 0; t < n; ++t) {
      for (int64_t c = 0; c < channels; ++c) {
        float sum = 0;
        for (int k = 0; k < a.taps; ++k) {
          sum =
              __builtin_fmaf(a.w[c * a.taps + k], input(t - a.dilation * (a.taps - 1 - k))[c], sum);
        }
        float* out = a.out.row(first + t) + c;
        *out = a.z ? *out + (a.z.row(first + t)[c] + silu_c(sum)) : silu_c(sum);
      }
    }
    for (int d = 0; d < depth; ++d) {
      std::copy_n(input(n - depth + d), channels, next + static_cast<int64_t>(d) * channels);
    }
    for (int t = 0; t < n && a.tail.logs(n); ++t) {
      std::copy_n(input(t), channels, a.tail.logged(slot, t));
    }
  }
}

void tail_commit(const TailCommit& a) {
  const int64_t depth = a.tail.depth(), width = a.tail.width();
  for (int seq = 0; seq < *a.rows.n_seqs; ++seq) {
    const int kept = a.kept[seq];
    if (kept < 0) continue;
    const int slot = a.rows.seq_slot[seq], side = a.rows.side[slot];
    const float* old = a.tail.side(slot, side);
    float* next = a.tail.side(slot, 1 - side);
    for (int64_t d = 0; d < depth; ++d) {
      const int64_t t = kept - depth + d;
      const float* from =
          t >= 0 ? a.tail.logged(slot, static_cast<int>(t)) : old + (depth + t) * width;
      std::copy_n(from, width, next + d * width);
    }
  }
}

}  // namespace strata::kernels::ref
