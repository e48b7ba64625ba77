#pragma once

#include <vector>

#include "strata/kernels/ops/moe.h"
#include "strata/kernels/ops/rows.h"
#include "strata/model/arch/qwen4exp_config.h"
#include "strata/model/model.h"
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

// What one stage computes with; what is looked up by row has Qwen4ExpTables.
struct Qwen4ExpWeights {
  std::vector<Qwen4ExpLayer> layers;  // of the stage, then draft

  // Of the last stage.
  kernels::Weight output;
  HcSite final_site;
  kernels::Weight eh_proj, draft_output;  // the latter: the trunk's by default
  HcSite draft_site;
  const float *enorm = nullptr, *hnorm = nullptr;
};

// Layers [first, end) of the trunk.
struct LayerRange {
  int first = 0, end = 0;
  bool last = false;   // with final site and output
  bool draft = false;  // and the draft layer
  // Of all layers: whether their experts are here; of the others only the shapes.
  std::vector<bool> experts;
};

// Asks for every tensor of these; out must not move until the weights are placed.
void collect_weights(const Qwen4ExpConfig& config, const LayerRange& range, Weights& weights,
                     Qwen4ExpWeights& out);

// Asks for the experts of a layer: shapes and factors; where they will lie, if parts is given; and
// where they are in the file, if files is.
void collect_experts(const Qwen4ExpConfig& config, int layer, Weights& weights,
                     kernels::ExpertShape& shape, std::vector<memory::ExpertStore::Parts>* parts,
                     memory::BlobFiles* files = nullptr);

// What the file has for each layer of trunk and draft, and for the head.
std::vector<ModelFacts::Layer> layer_bytes(const Qwen4ExpConfig& config, const gguf::Model& file);
Bytes head_bytes(const gguf::Model& file);

// Of the file's tensors, what a token of the trunk reads: every matrix and vector of a layer once,
// top_k of the routed experts, the final site and the output. Not the rows that it looks up in
// embeddings, and no state.
Bytes bytes_per_token(const Qwen4ExpConfig& config, const gguf::Model& file);

}  // namespace strata::model
