// The row functions of row_fns.h, written so that the compiler vectorises them without changing a
// bit: fixed lanes, explicit fma, no reductions left to it. Included by one source an instruction
// set, inside an anonymous namespace, after <immintrin.h>, <cstdint> and canonical_math.inl.

static inline float half_to_float(uint16_t h) { return _cvtsh_ss(h); }
static inline float element(const float* x, int64_t i) { return x[i]; }
static inline float element(const uint16_t* x, int64_t i) { return half_to_float(x[i]); }

float inverse_rms(const float* x, int n, float eps) { return inverse_rms_c(x, n, eps); }

void scale_by(const float* __restrict x, float r, const float* __restrict w, int n,
              float* __restrict out) {
  for (int i = 0; i < n; ++i) out[i] = x[i] * r * w[i];
}

void group_norm(const float* x, const float* w, int groups, int width, float eps, float* out) {
  for (int g = 0; g < groups; ++g) {
    const int64_t at = static_cast<int64_t>(g) * width;
    scale_by(x + at, inverse_rms_c(x + at, width, eps), w + at, width, out + at);
  }
}

void silu_scaled(float* __restrict x, int n, float scale) {
  for (int i = 0; i < n; ++i) x[i] = silu_c(x[i] * scale);
}

void inject_gate(float* __restrict x, int n, float scale) {
  for (int i = 0; i < n; ++i) x[i] = 2.0f * sigmoid_c(x[i] * scale);
}

void hc_mix(const float* __restrict m, const float* __restrict n, int streams, int width, int begin,
            int end, float* __restrict u) {
  const float inverse = 1.0f / static_cast<float>(streams);
  for (int i = begin; i < end; ++i) u[i] = 0;
  for (int s = 0; s < streams; ++s) {
    const float* ms = m + static_cast<int64_t>(s) * width;
    const float* ns = n + static_cast<int64_t>(s) * width;
    for (int i = begin; i < end; ++i) u[i] = __builtin_fmaf(sigmoid_c(ms[i]), ns[i], u[i]);
  }
  for (int i = begin; i < end; ++i) u[i] = u[i] * inverse;
}

void hc_write(const float* inj, const float* __restrict y, int streams, int width,
              float* __restrict h) {
  for (int s = 0; s < streams; ++s) {
    float* hs = h + static_cast<int64_t>(s) * width;
    const float scale = inj[s];
    for (int i = 0; i < width; ++i) hs[i] = __builtin_fmaf(scale, y[i], hs[i]);
  }
}

void ple_mix(const float* key, const float* value, const float* h, const float* norm_key,
             const float* norm_query, const float* norm_conv, int width, float eps, float* z,
             float* normed) {
  // The outputs hold the normed inputs for a while.
  scale_by(key, inverse_rms_c(key, width, eps), norm_key, width, z);
  scale_by(h, inverse_rms_c(h, width, eps), norm_query, width, normed);
  const float dot = dot_c(z, normed, width) / __builtin_sqrtf(static_cast<float>(width));
  const float size = dot < 0 ? -dot : dot;
  const float root = __builtin_sqrtf(size < 1e-6f ? 1e-6f : size);
  const float gate = sigmoid_c(dot > 0 ? root : (dot < 0 ? -root : 0.0f * dot));
  for (int i = 0; i < width; ++i) z[i] = gate * value[i];
  scale_by(z, inverse_rms_c(z, width, eps), norm_conv, width, normed);
}

template <int kTaps>
static inline void conv_taps(const float* const* in, const float* __restrict w, int begin, int end,
                             float* __restrict sum) {
  for (int c = begin; c < end; ++c) {
    float s = 0;
    for (int k = 0; k < kTaps; ++k) s = __builtin_fmaf(w[c * kTaps + k], in[k][c], s);
    sum[c - begin] = s;
  }
}

void conv(const float* const* in, const float* w, int taps, int begin, int end, const float* z,
          float* out) {
  constexpr int kPiece = 256;
  float sum[kPiece];
  for (int at = begin; at < end; at += kPiece) {
    const int stop = at + kPiece < end ? at + kPiece : end;
    if (taps == 4) {
      conv_taps<4>(in, w, at, stop, sum);
    } else {
      for (int c = at; c < stop; ++c) {
        float s = 0;
        for (int k = 0; k < taps; ++k) {
          s = __builtin_fmaf(w[static_cast<int64_t>(c) * taps + k], in[k][c], s);
        }
        sum[c - at] = s;
      }
    }
    if (z) {
      for (int c = at; c < stop; ++c) out[c] = out[c] + (z[c] + silu_c(sum[c - at]));
    } else {
      for (int c = at; c < stop; ++c) out[c] = silu_c(sum[c - at]);
    }
  }
}

void l2_norm(const float* __restrict x, int n, float eps, float scale, float* __restrict out) {
  const float r = 1.0f / __builtin_sqrtf(dot_c(x, x, n) + eps) * scale;
  for (int i = 0; i < n; ++i) out[i] = x[i] * r;
}

void delta_gates(const float* __restrict alpha, const float* __restrict b,
                 const float* __restrict a, const float* __restrict dt, int n,
                 float* __restrict decay, float* __restrict beta) {
  for (int h = 0; h < n; ++h) {
    beta[h] = sigmoid_c(b[h]);
    decay[h] = exp_c(a[h] * softplus_c(alpha[h] + dt[h]));
  }
}

// One tile of kWidth value columns stays in registers or L1 for all tokens. The sums over the key
// index run in four chains (k mod 4): the canonical order, and enough of them to hide the latency.
template <int kWidth>
static inline void delta_tile(float* __restrict s, int stride, int dk, int n,
                              const float* __restrict q, const float* __restrict k,
                              int64_t qk_stride, const float* __restrict v, int64_t v_stride,
                              const float* __restrict decay, const float* __restrict beta,
                              int64_t gate_stride, float* o, float* log_d, int64_t o_stride) {
  for (int t = 0; t < n; ++t, q += qk_stride, k += qk_stride, v += v_stride) {
    const float e = decay[t * gate_stride];
    float chain[4][kWidth] = {};
    int i = 0;
    for (; i + 4 <= dk; i += 4) {
      for (int c = 0; c < 4; ++c) {
        float* row = s + static_cast<int64_t>(i + c) * stride;
        const float key = k[i + c];
        for (int j = 0; j < kWidth; ++j) {
          const float decayed = e * row[j];
          row[j] = decayed;
          chain[c][j] = __builtin_fmaf(decayed, key, chain[c][j]);
        }
      }
    }
    for (int c = 0; i + c < dk; ++c) {
      float* row = s + static_cast<int64_t>(i + c) * stride;
      for (int j = 0; j < kWidth; ++j) {
        row[j] = e * row[j];
        chain[c][j] = __builtin_fmaf(row[j], k[i + c], chain[c][j]);
      }
    }
    float d[kWidth];
    const float b = beta[t * gate_stride];
    for (int j = 0; j < kWidth; ++j) {
      d[j] = b * (v[j] - ((chain[0][j] + chain[1][j]) + (chain[2][j] + chain[3][j])));
    }
    if (log_d) {
      for (int j = 0; j < kWidth; ++j) log_d[t * o_stride + j] = d[j];
    }
    float sum[4][kWidth] = {};
    for (i = 0; i + 4 <= dk; i += 4) {
      for (int c = 0; c < 4; ++c) {
        float* row = s + static_cast<int64_t>(i + c) * stride;
        const float key = k[i + c], query = q[i + c];
        for (int j = 0; j < kWidth; ++j) {
          const float updated = __builtin_fmaf(key, d[j], row[j]);
          row[j] = updated;
          sum[c][j] = __builtin_fmaf(updated, query, sum[c][j]);
        }
      }
    }
    for (int c = 0; i + c < dk; ++c) {
      float* row = s + static_cast<int64_t>(i + c) * stride;
      for (int j = 0; j < kWidth; ++j) {
        row[j] = __builtin_fmaf(k[i + c], d[j], row[j]);
        sum[c][j] = __builtin_fmaf(row[j], q[i + c], sum[c][j]);
      }
    }
    for (int j = 0; j < kWidth; ++j) {
      o[t * o_stride + j] = (sum[0][j] + sum[1][j]) + (sum[2][j] + sum[3][j]);
    }
  }
}

void delta_rule(const float* s_in, float* s_out, int dk, int dv, int v0, int vn, int n,
                const float* q, const float* k, int64_t qk_stride, const float* v, int64_t v_stride,
                const float* decay, const float* beta, int64_t gate_stride, float* o, float* log_d,
                int64_t o_stride) {
  constexpr int kTile = 32;
  // A dense copy of the tile: dv apart, the rows of a power-of-two width would share cache sets.
  alignas(64) float s[256 * kTile];
  for (int at = v0; at < v0 + vn;) {
    const int width = v0 + vn - at >= kTile ? kTile : (v0 + vn - at >= 8 ? 8 : 1);
    for (int i = 0; i < dk; ++i) {
      for (int j = 0; j < width; ++j)
        s[i * width + j] = s_in[static_cast<int64_t>(i) * dv + at + j];
    }
    float* log = log_d ? log_d + at : nullptr;
    if (width == kTile) {
      delta_tile<kTile>(s, width, dk, n, q, k, qk_stride, v + at, v_stride, decay, beta,
                        gate_stride, o + at, log, o_stride);
    } else if (width == 8) {
      delta_tile<8>(s, width, dk, n, q, k, qk_stride, v + at, v_stride, decay, beta, gate_stride,
                    o + at, log, o_stride);
    } else {
      delta_tile<1>(s, width, dk, n, q, k, qk_stride, v + at, v_stride, decay, beta, gate_stride,
                    o + at, log, o_stride);
    }
    for (int i = 0; i < dk; ++i) {
      for (int j = 0; j < width; ++j)
        s_out[static_cast<int64_t>(i) * dv + at + j] = s[i * width + j];
    }
    at += width;
  }
}

void delta_replay(const float* s_in, float* s_out, int dk, int dv, int n, const float* k,
                  int64_t k_stride, const float* d, int64_t d_stride, const float* decay,
                  int64_t gate_stride) {
  for (int i = 0; i < dk; ++i) {
    float* __restrict row = s_out + static_cast<int64_t>(i) * dv;
    const float* from = s_in + static_cast<int64_t>(i) * dv;
    for (int j = 0; j < dv; ++j) row[j] = from[j];
    for (int t = 0; t < n; ++t) {
      const float e = decay[t * gate_stride], key = k[t * k_stride + i];
      const float* dt = d + t * d_stride;
      for (int j = 0; j < dv; ++j) {
        const float decayed = e * row[j];
        row[j] = __builtin_fmaf(key, dt[j], decayed);
      }
    }
  }
}

void gated_norm(const float* __restrict o, const float* __restrict w, const float* __restrict z,
                int n, float eps, float* __restrict out) {
  const float r = inverse_rms_c(o, n, eps);
  for (int i = 0; i < n; ++i) out[i] = o[i] * r * w[i] * sigmoid_c(z[i]);
}

void norm_rope(const float* __restrict x, const float* __restrict w, int dim, float eps,
               const float* __restrict rope, int pairs, float* __restrict out) {
  const float r = inverse_rms_c(x, dim, eps);
  for (int i = 0; i < dim; ++i) out[i] = x[i] * r * w[i];
  for (int i = 0; i < pairs; ++i) {
    const float c = rope[i], s = rope[pairs + i], a = out[i], b = out[i + pairs];
    out[i] = __builtin_fmaf(a, c, -(b * s));
    out[i + pairs] = __builtin_fmaf(b, c, a * s);
  }
}

void to_f16(const float* x, int n, uint16_t* out) {
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
  }
  for (; i < n; ++i) out[i] = _cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT);
}

static inline const float* as_floats(const float* x, int, float*) { return x; }
static inline const float* as_floats(const uint16_t* x, int n, float* buffer) {
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(buffer + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
  }
  for (; i < n; ++i) buffer[i] = half_to_float(x[i]);
  return buffer;
}

// Head dims beyond this take the slow path of the caller; see ops.cpp.
constexpr int kMaxHeadDim = 512;

template <class T>
static inline void index_scores(const float* q, const T* keys, int heads, int dim, int n,
                                float scale, float* score) {
  float buffer[kMaxHeadDim];
  for (int b = 0; b < n; ++b) {
    const float* key = as_floats(keys + static_cast<int64_t>(b) * dim, dim, buffer);
    float sum = 0;
    for (int h = 0; h < heads; ++h) {
      const float dot = dot_c(q + static_cast<int64_t>(h) * dim, key, dim);
      sum = sum + (dot < 0 ? 0.0f : dot);  // a NaN stays one
    }
    score[b] = sum * scale;
  }
}
void index_scores_f32(const float* q, const float* keys, int heads, int dim, int n, float scale,
                      float* score) {
  index_scores(q, keys, heads, dim, n, scale, score);
}
void index_scores_f16(const float* q, const uint16_t* keys, int heads, int dim, int n, float scale,
                      float* score) {
  index_scores(q, keys, heads, dim, n, scale, score);
}

template <class T>
static inline void attend(const float* q, int heads, int dk, int dv, const T* const* keys,
                          const T* const* values, int64_t n, float scale, const float* gate,
                          int gate_stride, float* score, float* out) {
  float buffer[kMaxHeadDim];
  for (int64_t s = 0; s < n; ++s) {
    const float* key = as_floats(keys[s], dk, buffer);
    for (int h = 0; h < heads; ++h) {
      score[h * n + s] = dot_c(q + static_cast<int64_t>(h) * dk, key, dk) * scale;
    }
  }
  for (int h = 0; h < heads; ++h) {
    float* x = score + h * n;
    float best = x[0];
    for (int64_t s = 1; s < n; ++s) best = x[s] > best ? x[s] : best;
    for (int64_t s = 0; s < n; ++s) x[s] = exp_c(x[s] - best);
    for (int i = 0; i < dv; ++i) out[static_cast<int64_t>(h) * dv + i] = 0;
  }
  for (int64_t s = 0; s < n; ++s) {
    const float* value = as_floats(values[s], dv, buffer);
    for (int h = 0; h < heads; ++h) {
      float* __restrict o = out + static_cast<int64_t>(h) * dv;
      const float p = score[h * n + s];
      for (int i = 0; i < dv; ++i) o[i] = __builtin_fmaf(p, value[i], o[i]);
    }
  }
  for (int h = 0; h < heads; ++h) {
    const float inverse = 1.0f / sum_c(score + h * n, n);
    float* o = out + static_cast<int64_t>(h) * dv;
    const float* g = gate + static_cast<int64_t>(h) * gate_stride;
    for (int i = 0; i < dv; ++i) o[i] = o[i] * inverse * sigmoid_c(g[i]);
  }
}
void attend_f32(const float* q, int heads, int dk, int dv, const float* const* keys,
                const float* const* values, int64_t n, float scale, const float* gate,
                int gate_stride, float* score, float* out) {
  attend(q, heads, dk, dv, keys, values, n, scale, gate, gate_stride, score, out);
}
void attend_f16(const float* q, int heads, int dk, int dv, const uint16_t* const* keys,
                const uint16_t* const* values, int64_t n, float scale, const float* gate,
                int gate_stride, float* score, float* out) {
  attend(q, heads, dk, dv, keys, values, n, scale, gate, gate_stride, score, out);
}

void softmax(const float* __restrict x, int n, float* __restrict p) {
  float best = x[0];
  for (int i = 1; i < n; ++i) best = x[i] > best ? x[i] : best;
  for (int i = 0; i < n; ++i) p[i] = exp_c(x[i] - best);
  const float sum = sum_c(p, n);
  for (int i = 0; i < n; ++i) p[i] = p[i] / sum;
}

void swiglu(float* __restrict g, const float* __restrict u, int n) {
  for (int i = 0; i < n; ++i) g[i] = silu_c(g[i]) * u[i];
}

void combine(const float* const* expert, const float* weight, int n_experts, float gate,
             const float* shared, int n, float* __restrict y) {
  for (int i = 0; i < n; ++i) y[i] = 0;
  for (int j = 0; j < n_experts; ++j) {
    const float* x = expert[j];
    const float w = weight[j];
    for (int i = 0; i < n; ++i) y[i] = __builtin_fmaf(w, x[i], y[i]);
  }
  const float s = sigmoid_c(gate);
  for (int i = 0; i < n; ++i) y[i] = __builtin_fmaf(s, shared[i], y[i]);
}

const RowFns kRowFns = {
    .group_norm = group_norm,
    .inverse_rms = inverse_rms,
    .scale_by = scale_by,
    .silu_scaled = silu_scaled,
    .inject_gate = inject_gate,
    .hc_mix = hc_mix,
    .hc_write = hc_write,
    .ple_mix = ple_mix,
    .conv = conv,
    .l2_norm = l2_norm,
    .delta_gates = delta_gates,
    .delta_rule = delta_rule,
    .delta_replay = delta_replay,
    .gated_norm = gated_norm,
    .norm_rope = norm_rope,
    .to_f16 = to_f16,
    .index_scores_f32 = index_scores_f32,
    .index_scores_f16 = index_scores_f16,
    .attend_f32 = attend_f32,
    .attend_f16 = attend_f16,
    .softmax = softmax,
    .swiglu = swiglu,
    .combine = combine,
};
