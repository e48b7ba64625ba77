// The row functions of row_fns.h, written so that the compiler vectorises them without changing a
// bit: fixed lanes, explicit fma, no reductions left to it. Included by one source an instruction
// set, inside an anonymous namespace, after <immintrin.h>, <cstdint>, canonical_math.inl and
// rows_vec.inl.

static inline float half_to_float(uint16_t h) { return _cvtsh_ss(h); }
static inline float element(const float* x, int64_t i) { return x[i]; }
static inline float element(const uint16_t* x, int64_t i) { return half_to_float(x[i]); }
static inline float element(const int8_t* x, int64_t i) { return static_cast<float>(x[i]); }

float inverse_rms(const float* x, int n, float eps) { return inverse_rms_v(x, n, eps); }

void scale_by(const float* __restrict x, float r, const float* __restrict w, int n,
              float* __restrict out) {
  for (int i = 0; i < n; ++i) out[i] = x[i] * r * w[i];
}

void group_norm(const float* x, const float* w, int groups, int width, float eps, float* out) {
  for (int g = 0; g < groups; ++g) {
    const int64_t at = static_cast<int64_t>(g) * width;
    scale_by(x + at, inverse_rms_v(x + at, width, eps), w + at, width, out + at);
  }
}

void silu_scaled(float* x, int n, float scale) {
  fill(
      n, x, [&](int64_t i) { return silu_v(mul(load(x + i), all(scale))); },
      [&](int64_t i) { return silu_c(x[i] * scale); });
}

void inject_gate(float* __restrict x, int n, float scale) {
  for (int i = 0; i < n; ++i) x[i] = 2.0f * sigmoid_c(x[i] * scale);
}

void hc_mix(const float* __restrict m, const float* __restrict n, int streams, int width, int begin,
            int end, float* __restrict u) {
  const float inverse = 1.0f / static_cast<float>(streams);
  m += begin, n += begin;
  fill(
      end - begin, u + begin,
      [&](int64_t i) {
        V sum = zero();
        for (int64_t s = 0; s < streams; ++s) {
          sum = fma(sigmoid_v(load(m + s * width + i)), load(n + s * width + i), sum);
        }
        return mul(sum, all(inverse));
      },
      [&](int64_t i) {
        float sum = 0;
        for (int64_t s = 0; s < streams; ++s) {
          sum = __builtin_fmaf(sigmoid_c(m[s * width + i]), n[s * width + i], sum);
        }
        return sum * inverse;
      });
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
  scale_by(key, inverse_rms_v(key, width, eps), norm_key, width, z);
  scale_by(h, inverse_rms_v(h, width, eps), norm_query, width, normed);
  const float dot = dot_v(z, normed, width) / __builtin_sqrtf(static_cast<float>(width));
  const float size = dot < 0 ? -dot : dot;
  const float root = __builtin_sqrtf(size < 1e-6f ? 1e-6f : size);
  const float gate = sigmoid_c(dot > 0 ? root : (dot < 0 ? -root : 0.0f * dot));
  for (int i = 0; i < width; ++i) z[i] = gate * value[i];
  scale_by(z, inverse_rms_v(z, width, eps), norm_conv, width, normed);
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
    float* to = out + at;
    if (z) {
      fill(
          stop - at, to,
          [&](int64_t i) {
            return add(load(to + i), add(load(z + at + i), silu_v(load(sum + i))));
          },
          [&](int64_t i) { return to[i] + (z[at + i] + silu_c(sum[i])); });
    } else {
      fill(
          stop - at, to, [&](int64_t i) { return silu_v(load(sum + i)); },
          [&](int64_t i) { return silu_c(sum[i]); });
    }
  }
}

void l2_norm(const float* __restrict x, int n, float eps, float scale, float* __restrict out) {
  const float r = 1.0f / __builtin_sqrtf(dot_v(x, x, n) + eps) * scale;
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

// What the delta rule of one head reads and writes beside the state; strides count tokens.
struct DeltaRows {
  const float *q, *k;
  int64_t qk_stride;
  const float* v;
  int64_t v_stride;
  const float *decay, *beta;
  int64_t gate_stride;
  float *o, *log_d;
  int64_t o_stride;
};

// Four chains (k mod 4) of a sum over the key index: the canonical order, and enough of them to
// hide the latency.
template <int kW>
struct Chains {
  V v[4][kW];
  void clear() {
    for (auto& chain : v) {
      for (V& x : chain) x = zero();
    }
  }
  V sum(int w) const { return add(add(v[0][w], v[1][w]), add(v[2][w], v[3][w])); }
};

// d = beta (v - S^T k)
template <int kW>
static inline void delta_error(const DeltaRows& r, int64_t t, const Chains<kW>& key_sum, V* d) {
  const V beta = all(r.beta[t * r.gate_stride]);
  for (int w = 0; w < kW; ++w) {
    d[w] = mul(beta, sub(load(r.v + t * r.v_stride + w * kV), key_sum.sum(w)));
    if (r.log_d) store(r.log_d + t * r.o_stride + w * kV, d[w]);
  }
}

// One token, kW registers of value columns: the state is read twice, the second time from L1, and
// written once, past the caches if kStream.
template <int kW, bool kStream>
static inline void delta_token(const float* s_in, float* s_out, int dk, int dv,
                               const DeltaRows& r) {
  const V e = all(r.decay[0]);
  Chains<kW> key_sum, query_sum;
  key_sum.clear();
  query_sum.clear();
  const auto first = [&](int i, int c) {
    const V key = all(r.k[i + c]);
    const float* row = s_in + static_cast<int64_t>(i + c) * dv;
    for (int w = 0; w < kW; ++w) {
      key_sum.v[c][w] = fma(mul(e, load(row + w * kV)), key, key_sum.v[c][w]);
    }
  };
  int i = 0;
  for (; i + 4 <= dk; i += 4) {
    for (int c = 0; c < 4; ++c) first(i, c);
  }
  for (int c = 0; i + c < dk; ++c) first(i, c);
  V d[kW];
  delta_error<kW>(r, 0, key_sum, d);
  const auto second = [&](int c) {
    const V key = all(r.k[i + c]), query = all(r.q[i + c]);
    const float* row = s_in + static_cast<int64_t>(i + c) * dv;
    float* out = s_out + static_cast<int64_t>(i + c) * dv;
    for (int w = 0; w < kW; ++w) {
      const V updated = fma(key, d[w], mul(e, load(row + w * kV)));
      if (kStream) {
        stream(out + w * kV, updated);
      } else {
        store(out + w * kV, updated);
      }
      query_sum.v[c][w] = fma(updated, query, query_sum.v[c][w]);
    }
  };
  for (i = 0; i + 4 <= dk; i += 4) {
    for (int c = 0; c < 4; ++c) second(c);
  }
  for (int c = 0; i + c < dk; ++c) second(c);
  for (int w = 0; w < kW; ++w) store(r.o + w * kV, query_sum.sum(w));
}

// n > 1 tokens over kW registers of value columns. The state lies in a dense tile of the stack
// (rows dv apart would share cache sets) and is read and written once a token: the update by one
// token and the decay and sum of the next are one pass.
template <int kW>
static inline void delta_tokens(const float* s_in, float* s_out, int dk, int dv, int n,
                                const DeltaRows& r) {
  constexpr int kWidth = kW * kV;
  alignas(64) float tile[256 * kWidth];
  Chains<kW> key_sum;
  key_sum.clear();
  const V first_decay = all(r.decay[0]);
  const auto begin = [&](int i, int c) {
    for (int w = 0; w < kW; ++w) {
      const V x = mul(first_decay, load(s_in + static_cast<int64_t>(i + c) * dv + w * kV));
      store(tile + (i + c) * kWidth + w * kV, x);
      key_sum.v[c][w] = fma(x, all(r.k[i + c]), key_sum.v[c][w]);
    }
  };
  int i = 0;
  for (; i + 4 <= dk; i += 4) {
    for (int c = 0; c < 4; ++c) begin(i, c);
  }
  for (int c = 0; i + c < dk; ++c) begin(i, c);

  for (int t = 0; t < n; ++t) {
    const float* q = r.q + t * r.qk_stride;
    const float* k = r.k + t * r.qk_stride;
    V d[kW];
    delta_error<kW>(r, t, key_sum, d);
    Chains<kW> query_sum;
    query_sum.clear();
    if (t + 1 == n) {
      const auto last = [&](int c) {
        for (int w = 0; w < kW; ++w) {
          const V updated = fma(all(k[i + c]), d[w], load(tile + (i + c) * kWidth + w * kV));
          store(s_out + static_cast<int64_t>(i + c) * dv + w * kV, updated);
          query_sum.v[c][w] = fma(updated, all(q[i + c]), query_sum.v[c][w]);
        }
      };
      for (i = 0; i + 4 <= dk; i += 4) {
        for (int c = 0; c < 4; ++c) last(c);
      }
      for (int c = 0; i + c < dk; ++c) last(c);
    } else {
      const V e = all(r.decay[(t + 1) * r.gate_stride]);
      const float* next = k + r.qk_stride;
      key_sum.clear();
      const auto step = [&](int c) {
        const V key = all(k[i + c]), query = all(q[i + c]), next_key = all(next[i + c]);
        for (int w = 0; w < kW; ++w) {
          float* at = tile + (i + c) * kWidth + w * kV;
          const V updated = fma(key, d[w], load(at));
          query_sum.v[c][w] = fma(updated, query, query_sum.v[c][w]);
          const V decayed = mul(e, updated);
          store(at, decayed);
          key_sum.v[c][w] = fma(decayed, next_key, key_sum.v[c][w]);
        }
      };
      for (i = 0; i + 4 <= dk; i += 4) {
        for (int c = 0; c < 4; ++c) step(c);
      }
      for (int c = 0; i + c < dk; ++c) step(c);
    }
    for (int w = 0; w < kW; ++w) store(r.o + t * r.o_stride + w * kV, query_sum.sum(w));
  }
}

// Columns that fill no register, one at a time.
static inline void delta_column(const float* s_in, float* s_out, int dk, int dv, int n,
                                const DeltaRows& r) {
  float s[256];
  for (int i = 0; i < dk; ++i) s[i] = s_in[static_cast<int64_t>(i) * dv];
  for (int64_t t = 0; t < n; ++t) {
    const float* q = r.q + t * r.qk_stride;
    const float* k = r.k + t * r.qk_stride;
    const float e = r.decay[t * r.gate_stride];
    float key_sum[4] = {}, query_sum[4] = {};
    for (int i = 0; i < dk; ++i) {
      s[i] = e * s[i];
      key_sum[i % 4] = __builtin_fmaf(s[i], k[i], key_sum[i % 4]);
    }
    const float d = r.beta[t * r.gate_stride] *
                    (r.v[t * r.v_stride] - ((key_sum[0] + key_sum[1]) + (key_sum[2] + key_sum[3])));
    if (r.log_d) r.log_d[t * r.o_stride] = d;
    for (int i = 0; i < dk; ++i) {
      s[i] = __builtin_fmaf(k[i], d, s[i]);
      query_sum[i % 4] = __builtin_fmaf(s[i], q[i], query_sum[i % 4]);
    }
    r.o[t * r.o_stride] = (query_sum[0] + query_sum[1]) + (query_sum[2] + query_sum[3]);
  }
  for (int i = 0; i < dk; ++i) s_out[static_cast<int64_t>(i) * dv] = s[i];
}

void delta_rule(const float* s_in, float* s_out, int dk, int dv, int v0, int vn, int n,
                const float* q, const float* k, int64_t qk_stride, const float* v, int64_t v_stride,
                const float* decay, const float* beta, int64_t gate_stride, float* o, float* log_d,
                int64_t o_stride, bool past_caches) {
  // As many accumulators as there are registers for.
  constexpr int kToken = kV == 16 ? 4 : 2, kTokens = kV == 16 ? 2 : 1;
  const bool streams =
      past_caches && reinterpret_cast<uintptr_t>(s_out) % 64 == 0 && dv % kV == 0 && v0 % kV == 0;
  for (int at = v0; at < v0 + vn;) {
    const int left = v0 + vn - at;
    const DeltaRows r{q,       k,    qk_stride,   v + at, v_stride,
                      decay,   beta, gate_stride, o + at, log_d ? log_d + at : nullptr,
                      o_stride};
    int width = 1;
    if (n == 1 && left >= kToken * kV) {
      width = kToken * kV;
      if (streams) {
        delta_token<kToken, true>(s_in + at, s_out + at, dk, dv, r);
      } else {
        delta_token<kToken, false>(s_in + at, s_out + at, dk, dv, r);
      }
    } else if (left >= kTokens * kV) {
      width = kTokens * kV;
      delta_tokens<kTokens>(s_in + at, s_out + at, dk, dv, n, r);
    } else if (left >= kV) {
      width = kV;
      delta_tokens<1>(s_in + at, s_out + at, dk, dv, n, r);
    } else {
      delta_column(s_in + at, s_out + at, dk, dv, n, r);
    }
    at += width;
  }
  if (streams) _mm_sfence();
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
  const float r = inverse_rms_v(o, n, eps);
  fill(
      n, out,
      [&](int64_t i) {
        return mul(mul(mul(load(o + i), all(r)), load(w + i)), sigmoid_v(load(z + i)));
      },
      [&](int64_t i) { return o[i] * r * w[i] * sigmoid_c(z[i]); });
}

void norm_rope(const float* __restrict x, const float* __restrict w, int dim, float eps,
               const float* __restrict rope, int pairs, float* __restrict out) {
  const float r = inverse_rms_v(x, dim, eps);
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

float to_i8(const float* x, int n, int8_t* out) {
  uint32_t most = 0;
  for (int i = 0; i < n; ++i) {
    const uint32_t bits = magnitude_bits_c(x[i]);
    most = bits > most ? bits : most;
  }
  const float factor = code_factor_c(most);
  for (int i = 0; i < n; ++i) out[i] = code_c(x[i], factor);
  return code_scale_c(most);
}

static inline const float* as_floats(const float* x, int, float*) { return x; }
static inline const float* as_floats(const int8_t* x, int n, float* buffer) {
  for (int i = 0; i < n; ++i) buffer[i] = element(x, i);
  return buffer;
}
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

// As many queries and keys at once as there are registers for.
constexpr int kDotHeads = kV == 16 ? 4 : 2, kDotKeys = kV == 16 ? 2 : 1;

// dots for any number of heads.
template <int kC, class T>
static inline void dots_of_heads(const float* q, const T* const* keys, int heads, int dim,
                                 float scale, float* out, int64_t out_stride) {
  int h = 0;
  for (; h + kDotHeads <= heads; h += kDotHeads) {
    dots<kDotHeads, kC>(q + static_cast<int64_t>(h) * dim, keys, dim, scale, out + h * out_stride,
                        out_stride);
  }
  for (; h < heads; ++h) {
    dots<1, kC>(q + static_cast<int64_t>(h) * dim, keys, dim, scale, out + h * out_stride,
                out_stride);
  }
}
// The same for n keys and any dim.
template <class T>
static inline void dots_of_keys(const float* q, const T* const* keys, int64_t n, int heads, int dim,
                                float scale, float* out, int64_t out_stride) {
  int64_t s = 0;
  if (dim % kLanes == 0) {
    constexpr int kAhead = 8;  // keys: blocks lie apart, so nothing else fetches them in time
    for (; s + kDotKeys <= n; s += kDotKeys) {
      for (int64_t next = s + kAhead; next < s + kAhead + kDotKeys && next < n; ++next) {
        for (int i = 0; i < dim; i += 64 / static_cast<int>(sizeof(T))) {
          _mm_prefetch(reinterpret_cast<const char*>(keys[next] + i), _MM_HINT_T0);
        }
      }
      dots_of_heads<kDotKeys>(q, keys + s, heads, dim, scale, out + s, out_stride);
    }
    for (; s < n; ++s) dots_of_heads<1>(q, keys + s, heads, dim, scale, out + s, out_stride);
    return;
  }
  float buffer[kMaxHeadDim];
  for (; s < n; ++s) {
    const float* key = as_floats(keys[s], dim, buffer);
    for (int h = 0; h < heads; ++h) {
      out[h * out_stride + s] = dot_v(q + static_cast<int64_t>(h) * dim, key, dim) * scale;
    }
  }
}

template <class T>
static inline void index_scores(const float* q, const T* keys, int heads, int dim, int n,
                                float scale, float* score) {
  constexpr int kPiece = 16, kHeads = 16;
  for (int b = 0; b < n; b += kPiece) {
    const int here = n - b < kPiece ? n - b : kPiece;
    const T* key[kPiece];
    for (int j = 0; j < here; ++j) key[j] = keys + static_cast<int64_t>(b + j) * dim;
    float sum[kPiece] = {};
    for (int h0 = 0; h0 < heads; h0 += kHeads) {
      const int n_heads = heads - h0 < kHeads ? heads - h0 : kHeads;
      float dot[kHeads * kPiece];
      dots_of_keys(q + static_cast<int64_t>(h0) * dim, key, here, n_heads, dim, 1.0f, dot, kPiece);
      for (int h = 0; h < n_heads; ++h) {
        for (int j = 0; j < here; ++j) {
          const float x = dot[h * kPiece + j];
          sum[j] = sum[j] + (x < 0 ? 0.0f : x);  // a NaN stays one
        }
      }
    }
    for (int j = 0; j < here; ++j) {
      const float x = sum[j] * scale;
      score[b + j] = x == x ? x : -__builtin_inff();
    }
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

void best_blocks(const float* score, int n, int budget, int32_t* block) {
  // The least score that is chosen: floats from 0 on order like their bits, so halving the range of
  // bits finds it in 31 passes over scores that lie in a near cache.
  float least = -__builtin_inff(), above = 0;
  if (count_from(score, n, 0.0f) >= budget) {
    uint32_t low = 0, high = 0x7f800001u;  // enough are not less than low, too few than high
    while (high - low > 1) {
      const uint32_t middle = low + (high - low) / 2;
      (count_from(score, n, bits_to_float(middle)) >= budget ? low : high) = middle;
    }
    least = bits_to_float(low), above = bits_to_float(high);
  }
  // Of those equal to it the first ones, as many as are wanted.
  int64_t equals = budget - count_from(score, n, above);
  for (int64_t i = 0; i < n; ++i) {
    if (i % kV == 0) {
      while (i + kV <= n && not_less_mask(load(score + i), all(least)) == 0) i += kV;
      if (i == n) break;
    }
    const bool equal = score[i] == least;
    if (score[i] > least || (equal && equals > 0)) *block++ = static_cast<int32_t>(i);
    equals -= equal ? 1 : 0;
  }
}

// out_h += sum of score_h[s] * values[s], for kH heads and kW registers of columns.
template <int kH, int kW, class T>
static inline void weigh(const float* score, int64_t score_stride, const T* const* values,
                         int64_t n, int at, float* out, int dv) {
  V acc[kH][kW];
  for (int h = 0; h < kH; ++h) {
    for (int w = 0; w < kW; ++w) acc[h][w] = load(out + static_cast<int64_t>(h) * dv + w * kV);
  }
  for (int64_t s = 0; s < n; ++s) {
    V value[kW];
    for (int w = 0; w < kW; ++w) value[w] = load(values[s] + at + w * kV);
    for (int h = 0; h < kH; ++h) {
      const V p = all(score[h * score_stride + s]);
      for (int w = 0; w < kW; ++w) acc[h][w] = fma(p, value[w], acc[h][w]);
    }
  }
  for (int h = 0; h < kH; ++h) {
    for (int w = 0; w < kW; ++w) store(out + static_cast<int64_t>(h) * dv + w * kV, acc[h][w]);
  }
}
// The same for all columns of kH heads.
template <int kH, class T>
static inline void weigh_columns(const float* score, int64_t score_stride, const T* const* values,
                                 int64_t n, float* out, int dv) {
  int at = 0;
  for (; at + 4 * kV <= dv; at += 4 * kV) {
    weigh<kH, 4>(score, score_stride, values, n, at, out + at, dv);
  }
  for (; at + kV <= dv; at += kV) weigh<kH, 1>(score, score_stride, values, n, at, out + at, dv);
  for (; at < dv; ++at) {
    for (int h = 0; h < kH; ++h) {
      float sum = out[static_cast<int64_t>(h) * dv + at];
      for (int64_t s = 0; s < n; ++s) {
        sum = __builtin_fmaf(score[h * score_stride + s], element(values[s], at), sum);
      }
      out[static_cast<int64_t>(h) * dv + at] = sum;
    }
  }
}

// x[i] = x[i] * y[i]
static inline void multiply(float* x, const float* y, int64_t n) {
  fill(
      n, x, [&](int64_t i) { return mul(load(x + i), load(y + i)); },
      [&](int64_t i) { return x[i] * y[i]; });
}

template <class T>
static inline void attend(const float* q, int heads, int dk, int dv, const CellRows<T>& cells,
                          float scale, const float* gate, int gate_stride, float* score,
                          float* out) {
  const int64_t n = cells.n;
  float inverse[kMaxAttendHeads];
  dots_of_keys(q, cells.keys, n, heads, dk, scale, score, n);
  for (int h = 0; h < heads; ++h) {
    float* x = score + h * n;
    if constexpr (sizeof(T) == 1) multiply(x, cells.key_scales, n);
    const float best = largest(x, n);
    exp_below(x, n, best);
    inverse[h] = 1.0f / sum_v(x, n);
    if constexpr (sizeof(T) == 1) multiply(x, cells.value_scales, n);
    for (int i = 0; i < dv; ++i) out[static_cast<int64_t>(h) * dv + i] = 0;
  }
  // The values of some cells for all heads, while they are in L1.
  constexpr int64_t kCells = 64;
  for (int64_t s = 0; s < n; s += kCells) {
    const int64_t here = n - s < kCells ? n - s : kCells;
    int h = 0;
    for (; h + kDotHeads <= heads; h += kDotHeads) {
      weigh_columns<kDotHeads>(score + h * n + s, n, cells.values + s, here,
                               out + static_cast<int64_t>(h) * dv, dv);
    }
    for (; h < heads; ++h) {
      weigh_columns<1>(score + h * n + s, n, cells.values + s, here,
                       out + static_cast<int64_t>(h) * dv, dv);
    }
  }
  for (int h = 0; h < heads; ++h) {
    float* o = out + static_cast<int64_t>(h) * dv;
    const float* g = gate + static_cast<int64_t>(h) * gate_stride;
    fill(
        dv, o,
        [&](int64_t i) { return mul(mul(load(o + i), all(inverse[h])), sigmoid_v(load(g + i))); },
        [&](int64_t i) { return o[i] * inverse[h] * sigmoid_c(g[i]); });
  }
}
void attend_f32(const float* q, int heads, int dk, int dv, const CellRows<float>& cells,
                float scale, const float* gate, int gate_stride, float* score, float* out) {
  attend(q, heads, dk, dv, cells, scale, gate, gate_stride, score, out);
}
void attend_f16(const float* q, int heads, int dk, int dv, const CellRows<uint16_t>& cells,
                float scale, const float* gate, int gate_stride, float* score, float* out) {
  attend(q, heads, dk, dv, cells, scale, gate, gate_stride, score, out);
}
void attend_i8(const float* q, int heads, int dk, int dv, const CellRows<int8_t>& cells,
               float scale, const float* gate, int gate_stride, float* score, float* out) {
  attend(q, heads, dk, dv, cells, scale, gate, gate_stride, score, out);
}

void softmax(const float* x, int n, float* p) {
  const float best = largest(x, n);
  fill(
      n, p, [&](int64_t i) { return exp_v(sub(load(x + i), all(best))); },
      [&](int64_t i) { return exp_c(x[i] - best); });
  const float sum = sum_v(p, n);
  for (int i = 0; i < n; ++i) p[i] = p[i] / sum;
}

void swiglu(float* g, const float* u, int n) {
  fill(
      n, g, [&](int64_t i) { return mul(silu_v(load(g + i)), load(u + i)); },
      [&](int64_t i) { return silu_c(g[i]) * u[i]; });
}

void combine(const float* const* expert, const float* weight, int n_experts, float gate,
             const float* shared, int n, float* __restrict y) {
  const float s = sigmoid_c(gate);
  int i = 0;
  for (; i + kV <= n; i += kV) {
    V sum = zero();
    for (int j = 0; j < n_experts; ++j) sum = fma(all(weight[j]), load(expert[j] + i), sum);
    store(y + i, fma(all(s), load(shared + i), sum));
  }
  for (; i < n; ++i) {
    float sum = 0;
    for (int j = 0; j < n_experts; ++j) sum = __builtin_fmaf(weight[j], expert[j][i], sum);
    y[i] = __builtin_fmaf(s, shared[i], sum);
  }
}

void top_k(float* p, int n, int k, int32_t* id, float* kept) {
  for (int i = 0; i < n; ++i) p[i] = p[i] == p[i] ? p[i] : -1.0f;
  for (int j = 0; j < k; ++j) {
    kept[j] = largest(p, n);
    const int64_t at = first_equal(p, n, kept[j]);
    id[j] = static_cast<int32_t>(at);
    p[at] = -__builtin_inff();
  }
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
    .to_i8 = to_i8,
    .index_scores_f32 = index_scores_f32,
    .index_scores_f16 = index_scores_f16,
    .best_blocks = best_blocks,
    .attend_f32 = attend_f32,
    .attend_f16 = attend_f16,
    .attend_i8 = attend_i8,
    .softmax = softmax,
    .swiglu = swiglu,
    .combine = combine,
    .top_k = top_k,
};
