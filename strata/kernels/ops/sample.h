#pragma once

#include "strata/kernels/ops/op.h"
#include "strata/kernels/ops/rows.h"

namespace strata::kernels {

// How one row is sampled; a row table in device memory. A temperature up to 1e-6 is greedy.
struct SampleParams {
  float temperature = 0;
  float top_p = 1, min_p = 0;
  float presence = 0, frequency = 0, repetition = 1;
  int32_t top_k = 0;                      // 0: no limit
  int32_t first_count = 0, n_counts = 0;  // this row's slice of counts
  int32_t first_bias = 0, n_bias = 0;     // and of biases
  uint64_t seed = 0;
  int64_t position = 0;  // index of the token to be sampled, counted from the session's start
};

struct TokenCount {
  int32_t id = 0;
  int32_t n = 0;         // times in the answer: presence and frequency
  int32_t repeated = 0;  // 1: in the window of the repetition penalty
};
struct TokenBias {
  int32_t id;
  float bias;
};

// Chooses a token for each row: penalties and bias, then temperature, then top-k, top-p and min-p
// filter the candidates, then argmax of logit / T + Gumbel noise keyed by (seed, position, id), so
// that the choice does not depend on what else is computed. Of equals the lower id wins.
// Repetition divides a positive logit of a seen token and multiplies a negative one; frequency
// counts, presence does not. An id stands once among the counts of a row.
// Shapes: logits [max_rows, vocab], overwritten; params [max_rows]; chosen [max_rows], -1 where the
//         best logit is infinite or there is none: a broken computation. counts and biases hold
//         what the params name.
struct SampleRows {
  static constexpr const char* kName = "sample_rows";
  const int32_t* n_rows = nullptr;
  View<float> logits;
  View<const SampleParams> params;
  View<const TokenCount> counts;
  View<const TokenBias> biases;
  View<int32_t> chosen;
  View<std::byte> scratch;
};
void check(const SampleRows& args);

}  // namespace strata::kernels
