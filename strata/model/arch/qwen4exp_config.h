#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strata/gguf/model.h"
#include "strata/model/options.h"

namespace strata::model {

// Hyper-parameters of a qwen4exp model, all of them from the file (docs/model.md gives the general
// forms). Names follow the keys.
struct Qwen4ExpConfig {
  std::string name;  // general.name
  int n_layers = 0;  // of the trunk
  int n_draft_layers = 0;
  ContextRange context;
  int width = 0;  // E
  int n_vocab = 0;
  float eps = 0;

  // Residual streams.
  int streams = 0, low_rank = 0;

  // Attention; per layer of trunk and draft blocks.
  std::vector<bool> recurrent;  // a Gated DeltaNet layer
  std::vector<int> ratio;       // tokens in an index block; 0: dense
  int heads = 0, kv_heads = 0, dk = 0, dv = 0;
  int index_heads = 0, index_dim = 0, index_top_k = 0;

  // Rotary embedding.
  int rope_dims = 0;
  double rope_base = 0;
  std::vector<int> rope_sections;  // T, H, W, 0

  // Gated DeltaNet.
  int gdn_taps = 0, gdn_dk = 0, gdn_dv = 0, gdn_key_heads = 0, gdn_value_heads = 0;

  // Experts.
  int n_experts = 0, top_k = 0, ff = 0, shared_ff = 0;

  // N-gram embedding; no layers: none.
  std::vector<int> ple_layers;
  int ple_ngram = 0, ple_heads = 0, ple_taps = 0, ple_width = 0;  // heads per order
  int ple_eos = 0;
  std::vector<uint64_t> ple_multipliers, ple_offsets, ple_sizes;

  // Draft layer: hidden norm per stream, else over the full row.
  bool draft_norm_per_stream = false;

  int wide() const { return streams * width; }
  int gdn_channels() const { return 2 * gdn_key_heads * gdn_dk + gdn_value_heads * gdn_dv; }
  int gdn_inner() const { return gdn_value_heads * gdn_dv; }
  int n_blocks() const { return n_layers + n_draft_layers; }
  int rope_pairs() const { return rope_dims / 2; }
  int index_budget(int layer) const {
    const int r = ratio[static_cast<size_t>(layer)];
    return r > 0 ? index_top_k / r : 0;
  }
  int ple_depth() const { return ple_ngram * (ple_taps - 1); }
  int n_ple_rows() const { return (ple_ngram - 1) * ple_heads; }
  bool is_ple_layer(int layer) const;
};

// Errors: kUnsupported naming the architecture or a key under its prefix that is not known here;
// kCorruptFile naming the key that is missing or does not fit the others.
Qwen4ExpConfig read_qwen4exp_config(const gguf::Model& file);

}  // namespace strata::model
