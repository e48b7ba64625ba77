#include <algorithm>
#include <cstdint>
#include <vector>

#include "strata/kernels/ref/ref.h"

namespace strata::kernels::ref {
namespace {
#include "strata/kernels/canonical_math.inl"

// x / sqrt(sum of squares + eps) * scale.
void l2_normalise(const float* x, int n, float eps, float scale, float* out) {
  const float r = 1.0f / __builtin_sqrtf(dot_c(x, x, n) + eps) * scale;
  for (int i = 0; i < n; ++i) out[i] = x[i] * r;
}

// The sum over k of s[k, v] * x[k] runs in four chains, k mod 4, added as (0 + 1) + (2 + 3).
float chained(const float* s, const float* x, int dk, int dv) {
  float chain[4] = {};
  for (int k = 0; k < dk; ++k) chain[k % 4] = __builtin_fmaf(s[k * dv], x[k], chain[k % 4]);
  return (chain[0] + chain[1]) + (chain[2] + chain[3]);
}

}  // namespace

void gdn(const Gdn& a) {
  const int dk = a.dk, dv = a.dv;
  std::vector<float> q(static_cast<size_t>(dk)), k(q.size());
  const float q_scale = 1.0f / __builtin_sqrtf(static_cast<float>(dk));
  for (int seq = 0; seq < *a.rows.n_seqs; ++seq) {
    const int slot = a.rows.seq_slot[seq], side = a.rows.side[slot];
    const int n = a.rows.seq_rows[seq];
    for (int h = 0; h < a.value_heads; ++h) {
      const int kh = h % a.key_heads;
      float* s = a.state.side(slot, 1 - side) + h * dk * dv;
      std::copy_n(a.state.side(slot, side) + h * dk * dv, dk * dv, s);
      for (int t = 0; t < n; ++t) {
        const int row = a.rows.seq_first[seq] + t;
        const float* qkv = a.qkv.row(row);
        l2_normalise(qkv + kh * dk, dk, a.eps, q_scale, q.data());
        l2_normalise(qkv + (a.key_heads + kh) * dk, dk, a.eps, 1.0f, k.data());
        const float* v = qkv + 2 * a.key_heads * dk + h * dv;
        const float beta = sigmoid_c(a.beta.row(row)[h]);
        const float decay = exp_c(a.a[h] * softplus_c(a.alpha.row(row)[h] + a.dt[h]));
        for (int i = 0; i < dk * dv; ++i) s[i] = decay * s[i];
        for (int j = 0; j < dv; ++j) {
          const float d = beta * (v[j] - chained(s + j, k.data(), dk, dv));
          for (int i = 0; i < dk; ++i) s[i * dv + j] = __builtin_fmaf(k[i], d, s[i * dv + j]);
          a.o.row(row)[h * dv + j] = chained(s + j, q.data(), dk, dv);
          if (a.state.logs(n)) a.state.log_d.row(slot)[(t * a.value_heads + h) * dv + j] = d;
        }
        if (!a.state.logs(n)) continue;
        a.state.log_g.row(slot)[t * a.value_heads + h] = decay;
        std::copy_n(k.data(), dk, a.state.log_k.row(slot) + (t * a.key_heads + kh) * dk);
      }
    }
  }
}

void gdn_commit(const GdnCommit& a) {
  const int dk = a.dk, dv = a.dv;
  for (int seq = 0; seq < *a.rows.n_seqs; ++seq) {
    const int kept = a.kept[seq];
    if (kept < 0) continue;
    const int slot = a.rows.seq_slot[seq], side = a.rows.side[slot];
    for (int h = 0; h < a.value_heads; ++h) {
      float* s = a.state.side(slot, 1 - side) + h * dk * dv;
      std::copy_n(a.state.side(slot, side) + h * dk * dv, dk * dv, s);
      for (int t = 0; t < kept; ++t) {
        const float decay = a.state.log_g.row(slot)[t * a.value_heads + h];
        const float* k = a.state.log_k.row(slot) + (t * a.key_heads + h % a.key_heads) * dk;
        const float* d = a.state.log_d.row(slot) + (t * a.value_heads + h) * dv;
        for (int i = 0; i < dk; ++i) {
          for (int j = 0; j < dv; ++j) {
            const float decayed = decay * s[i * dv + j];
            s[i * dv + j] = __builtin_fmaf(k[i], d[j], decayed);
          }
        }
      }
    }
  }
}

void gated_norm(const GatedNorm& a) {
  const int64_t heads = a.o.extent(1) / a.dv;
  for (int row = 0; row < *a.n_rows; ++row) {
    for (int64_t h = 0; h < heads; ++h) {
      const float* o = a.o.row(row) + h * a.dv;
      const float r = inverse_rms_c(o, a.dv, a.eps);
      for (int i = 0; i < a.dv; ++i) {
        a.out.row(row)[h * a.dv + i] = o[i] * r * a.w[i] * sigmoid_c(a.z.row(row)[h * a.dv + i]);
      }
    }
  }
}

}  // namespace strata::kernels::ref
