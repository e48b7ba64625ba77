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
  int32_t mask = -1;                      // row of masks; -1: any token may come
  int32_t n_top = -1;                     // write logprobs with so many alternatives; -1: none
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

// Natural logarithms of probabilities by the row's own logits: before penalties, biases, masks,
// temperature and filters, so never above 0.
struct RowLogprobs {
  static constexpr int kMaxTop = 20;
  float chosen;         // of the token that was chosen
  int32_t n_top;        // how many of these are there
  int32_t id[kMaxTop];  // the best ones, falling, of equals the lower id first
  float logprob[kMaxTop];
};
// A mask has a bit for each token: 64 a word, token 0 in bit 0 of the first.
constexpr int64_t mask_words(int64_t vocab) { return (vocab + 63) / 64; }

// Chooses a token for each row: penalties, bias and mask, then temperature, then top-k, top-p and
// min-p filter the candidates, then argmax of logit / T + Gumbel noise keyed by (seed, position,
// id), so that the choice does not depend on what else is computed. Of equals the lower id wins.
// Repetition divides a positive logit of a seen token and multiplies a negative one; frequency
// counts, presence does not. An id stands once among the counts of a row.
// Shapes: logits [max_rows, vocab], overwritten; params [max_rows]; chosen [max_rows], -1 where the
//         best logit is infinite or there is none: a broken computation, or an empty mask. counts
//         and biases hold what the params name; masks [max_rows, mask_words(vocab)] and logprobs
//         [max_rows] may be empty if no row names them.
struct SampleRows {
  static constexpr const char* kName = "sample_rows";
  const int32_t* n_rows = nullptr;
  View<float> logits;
  View<const SampleParams> params;
  View<const TokenCount> counts;
  View<const TokenBias> biases;
  View<const uint64_t> masks;
  View<int32_t> chosen;
  View<RowLogprobs> logprobs;
  View<std::byte> scratch;
};
void check(const SampleRows& args);

}  // namespace strata::kernels
