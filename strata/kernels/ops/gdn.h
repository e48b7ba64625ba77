#pragma once

#include "strata/kernels/ops/op.h"
#include "strata/kernels/ops/rows.h"

namespace strata::kernels {

// State of the gated delta rule of one layer.
struct DeltaState {
  View<float> s;      // [slots, 2, value_heads * dk, dv]; side as in Tail
  View<float> log_g;  // [slots, window, value_heads] the decay, exp(g)
  View<float> log_k;  // [slots, window, key_heads * dk]
  View<float> log_d;  // [slots, window, value_heads * dv]

  constexpr float* side(int slot, int which) const {
    return s.data() + (2 * static_cast<int64_t>(slot) + which) * s.extent(2) * s.extent(3);
  }
  constexpr bool logs(int n_rows) const { return n_rows > 1 && n_rows <= log_g.extent(1); }
};

// The gated delta rule, one token after the other (the canonical form, docs/numerics.md):
//   q, k = l2-normalised heads (q also / sqrt(dk));  beta = sigm(b);  g = a softplus(alpha + dt)
//   S = exp(g) S;  d = beta (v - S^T k);  S += k d^T;  o = S^T q
// Value head h uses key head h mod key_heads.
// Shapes: qkv [max_rows, 2 key_heads dk + value_heads dv]; beta, alpha [max_rows, value_heads];
//         a, dt [value_heads]; o [max_rows, value_heads * dv].
struct Gdn {
  static constexpr const char* kName = "gdn";
  Rows rows;
  View<const float> qkv, beta, alpha;
  const float* a = nullptr;
  const float* dt = nullptr;
  int key_heads = 0, value_heads = 0, dk = 0, dv = 0;
  float eps = 0;
  DeltaState state;
  View<float> o;
  View<std::byte> scratch;
};
void check(const Gdn& args);

// Replays kept[seq] logged rows on the committed side into the other. Same bits as Gdn.
struct GdnCommit {
  static constexpr const char* kName = "gdn_commit";
  Rows rows;
  const int32_t* kept = nullptr;  // [max_seqs]; < 0: leave alone
  int key_heads = 0, value_heads = 0, dk = 0, dv = 0;
  DeltaState state;
};
void check(const GdnCommit& args);

// out = rms(o per head; w) * sigm(z). Shapes: o, z, out [max_rows, heads * dv]; w [dv].
struct GatedNorm {
  static constexpr const char* kName = "gated_norm";
  const int32_t* n_rows = nullptr;
  View<const float> o, z;
  const float* w = nullptr;
  int dv = 0;
  float eps = 0;
  View<float> out;
};
void check(const GatedNorm& args);

}  // namespace strata::kernels
