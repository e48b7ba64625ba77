#pragma once

#include <cstdint>

// The work of one row, or of a part of one, of every op that is not a matrix product. Two builds of
// the same source (rows.inl) with different instruction sets; both give the bits of
// kernels/canonical_math.inl. Plain types only: see docs/style.md on isa/.
namespace strata::kernels::cpu {

// Query heads of one call of attend_*.
constexpr int kMaxAttendHeads = 64;

// The rows of n cells: of T, with scales where T is int8_t.
template <class T>
struct CellRows {
  const T** keys;
  const T** values;
  float* key_scales = nullptr;
  float* value_scales = nullptr;
  int64_t n = 0;
};

struct RowFns {
  // out = x * w / rms(x), for each of `groups` groups of `width`.
  void (*group_norm)(const float* x, const float* w, int groups, int width, float eps, float* out);
  // 1 / sqrt(mean of squares + eps)
  float (*inverse_rms)(const float* x, int n, float eps);
  // out[i] = x[i] * r * w[i]
  void (*scale_by)(const float* x, float r, const float* w, int n, float* out);
  // x = silu(x * scale)
  void (*silu_scaled)(float* x, int n, float scale);
  // x[i] = 2 sigm(x[i] * scale)
  void (*inject_gate)(float* x, int n, float scale);
  // u = mean over streams of sigm(m_s) * n_s, for columns [begin, end)
  void (*hc_mix)(const float* m, const float* n, int streams, int width, int begin, int end,
                 float* u);
  // h_s += inj_s * y
  void (*hc_write)(const float* inj, const float* y, int streams, int width, float* h);
  // One stream of PleMix.
  void (*ple_mix)(const float* key, const float* value, const float* h, const float* norm_key,
                  const float* norm_query, const float* norm_conv, int width, float eps, float* z,
                  float* normed);
  // out[c] = silu(sum_k w[c, k] in[k][c]), plus z and the old out where z is given.
  void (*conv)(const float* const* in, const float* w, int taps, int begin, int end, const float* z,
               float* out);
  // out = x / sqrt(sum of squares + eps) * scale
  void (*l2_norm)(const float* x, int n, float eps, float scale, float* out);
  // decay = exp(a softplus(alpha + dt)), beta = sigm(b)
  void (*delta_gates)(const float* alpha, const float* b, const float* a, const float* dt, int n,
                      float* decay, float* beta);
  // The delta rule of one head over n tokens, value columns [v0, v0 + vn): reads s_in, writes
  // s_out ([dk, dv] both). q, k: n rows `qk_stride` apart; v, o: `v_stride`, `o_stride`; decay,
  // beta: `gate_stride`. log_d: row t at t * o_stride, or null. dk <=
  // 256. past_caches: the state is larger than what stays in a cache until the next token.
  void (*delta_rule)(const float* s_in, float* s_out, int dk, int dv, int v0, int vn, int n,
                     const float* q, const float* k, int64_t qk_stride, const float* v,
                     int64_t v_stride, const float* decay, const float* beta, int64_t gate_stride,
                     float* o, float* log_d, int64_t o_stride, bool past_caches);
  // Its replay from the log.
  void (*delta_replay)(const float* s_in, float* s_out, int dk, int dv, int n, const float* k,
                       int64_t k_stride, const float* d, int64_t d_stride, const float* decay,
                       int64_t gate_stride);
  // out = x * w / rms(x) * sigm(z)
  void (*gated_norm)(const float* o, const float* w, const float* z, int n, float eps, float* out);
  // out = rope(x * w / rms(x)); rope: cos then sin
  void (*norm_rope)(const float* x, const float* w, int dim, float eps, const float* rope,
                    int pairs, float* out);
  void (*to_f16)(const float* x, int n, uint16_t* out);
  // Rule 1 of quant/canonical.h with n values as one block; gives the scale.
  float (*to_i8)(const float* x, int n, int8_t* out);
  // score[b] = sum over heads of relu(q_h . key_b) * scale, -infinity if that is no number; keys
  // stand together.
  void (*index_scores_f32)(const float* q, const float* keys, int heads, int dim, int n,
                           float scale, float* score);
  void (*index_scores_f16)(const float* q, const uint16_t* keys, int heads, int dim, int n,
                           float scale, float* score);
  // The indices of the `budget` best of n scores, ascending; of equals the lower index. Scores are
  // -infinity or from 0 on; budget < n.
  void (*best_blocks)(const float* score, int n, int budget, int32_t* block);
  // Attention of `heads` query heads over cells. score: scratch [heads, n]. gate of head h at
  // h * gate_stride; out [heads, dv].
  void (*attend_f32)(const float* q, int heads, int dk, int dv, const CellRows<float>& cells,
                     float scale, const float* gate, int gate_stride, float* score, float* out);
  void (*attend_f16)(const float* q, int heads, int dk, int dv, const CellRows<uint16_t>& cells,
                     float scale, const float* gate, int gate_stride, float* score, float* out);
  void (*attend_i8)(const float* q, int heads, int dk, int dv, const CellRows<int8_t>& cells,
                    float scale, const float* gate, int gate_stride, float* score, float* out);
  // p = softmax(x)
  void (*softmax)(const float* x, int n, float* p);
  // g = silu(g) * u
  void (*swiglu)(float* g, const float* u, int n);
  // y = sum_j weight[j] * expert[j], in the order given, then + sigm(gate) * shared
  void (*combine)(const float* const* expert, const float* weight, int n_experts, float gate,
                  const float* shared, int n, float* y);
  // The k largest of p by falling value, of equals the lower index first; a NaN counts as -1.
  // Overwrites p.
  void (*top_k)(float* p, int n, int k, int32_t* id, float* kept);
};

const RowFns& row_fns_avx2();
const RowFns& row_fns_avx512();

}  // namespace strata::kernels::cpu
