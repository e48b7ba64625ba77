#pragma once

#include <vector>

#include "strata/kernels/ops/moe.h"
#include "strata/kernels/ops/rows.h"
#include "strata/model/arch/qwen4exp_config.h"
#include "strata/model/weights.h"

namespace strata::model {

// A hyper-connection site; without inject at the final mixers.
struct HcSite {
  const float* norm = nullptr;
  kernels::Weight down, up, inject;
};

struct Qwen4ExpLayer {
  HcSite attention_site, ffn_site;

  // Gated DeltaNet.
  kernels::Weight qkv, z, beta, alpha, delta_out;
  const float *a = nullptr, *dt = nullptr, *conv = nullptr, *delta_norm = nullptr;

  // Attention.
  kernels::Weight q, k, v, out, index_q, index_k;
  const float *q_norm = nullptr, *k_norm = nullptr, *index_q_norm = nullptr,
              *index_k_norm = nullptr;

  // Experts.
  kernels::Weight router, shared_gate, shared_gate_proj, shared_up, shared_down;
  kernels::ExpertShape experts;
  std::vector<memory::ExpertStore::Parts> parts;

  // N-gram embedding.
  kernels::Weight ple_key, ple_value;
  const float *ple_norm_key = nullptr, *ple_norm_query = nullptr, *ple_norm_conv = nullptr,
              *ple_conv = nullptr;
};

struct Qwen4ExpWeights {
  kernels::Weight embedding, output, ple_table;
  HcSite final_site;
  std::vector<Qwen4ExpLayer> layers;  // trunk, then draft

  // Draft.
  kernels::Weight eh_proj, draft_embedding, draft_output;  // the last two: the trunk's by default
  HcSite draft_site;
  const float *enorm = nullptr, *hnorm = nullptr;
};

// Asks for every tensor of the model; out must not move until the weights are placed.
void collect_weights(const Qwen4ExpConfig& config, bool draft, Weights& weights,
                     Qwen4ExpWeights& out);

// Of the file's tensors, what a token of the trunk reads: every matrix and vector of a layer once,
// top_k of the routed experts, the final site and the output. Not the rows that it looks up in
// embeddings, and no state.
Bytes bytes_per_token(const Qwen4ExpConfig& config, const gguf::Model& file);

}  // namespace strata::model
