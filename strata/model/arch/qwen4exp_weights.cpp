#include "strata/model/arch/qwen4exp_weights.h"

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/memory/slot_table.h"

namespace strata::model {
namespace {

constexpr std::string_view kBlock = "blk.";

void collect_site(const Qwen4ExpConfig& c, const std::string& prefix, bool inject, Weights& w,
                  HcSite& site) {
  w.vector(prefix + "norm.weight", c.wide(), &site.norm);
  w.matrix(prefix + "down", c.low_rank, c.wide(), &site.down);
  w.matrix(prefix + "up", c.wide(), c.low_rank, &site.up);
  if (inject) w.matrix(prefix + "inject", c.streams, c.wide(), &site.inject);
}

void collect_delta_net(const Qwen4ExpConfig& c, const std::string& b, Weights& w,
                       Qwen4ExpLayer& layer) {
  w.matrix(b + "attn_qkv", c.gdn_channels(), c.width, &layer.qkv);
  w.matrix(b + "attn_gate", c.gdn_inner(), c.width, &layer.z);
  w.matrix(b + "ssm_beta", c.gdn_value_heads, c.width, &layer.beta);
  w.matrix(b + "ssm_alpha", c.gdn_value_heads, c.width, &layer.alpha);
  w.vector(b + "ssm_a", c.gdn_value_heads, &layer.a);
  w.vector(b + "ssm_dt.bias", c.gdn_value_heads, &layer.dt);
  w.vector(b + "ssm_conv1d.weight", int64_t{c.gdn_channels()} * c.gdn_taps, &layer.conv);
  w.vector(b + "ssm_norm.weight", c.gdn_dv, &layer.delta_norm);
  w.matrix(b + "ssm_out", c.width, c.gdn_inner(), &layer.delta_out);
}

void collect_attention(const Qwen4ExpConfig& c, const std::string& b, bool indexed, Weights& w,
                       Qwen4ExpLayer& layer) {
  // Each head has dk query rows, then dv gate rows.
  w.matrix(b + "attn_q", int64_t{c.heads} * (c.dk + c.dv), c.width, &layer.q);
  w.matrix(b + "attn_k", int64_t{c.kv_heads} * c.dk, c.width, &layer.k);
  w.matrix(b + "attn_v", int64_t{c.kv_heads} * c.dv, c.width, &layer.v);
  w.matrix(b + "attn_output", c.width, int64_t{c.heads} * c.dv, &layer.out);
  w.vector(b + "attn_q_norm.weight", c.dk, &layer.q_norm);
  w.vector(b + "attn_k_norm.weight", c.dk, &layer.k_norm);
  if (!indexed) return;
  w.matrix(b + "indexer.q_proj", int64_t{c.index_heads} * c.index_dim, c.width, &layer.index_q);
  w.matrix(b + "indexer.k_proj", c.index_dim, c.width, &layer.index_k);
  w.vector(b + "indexer.q_norm.weight", c.index_dim, &layer.index_q_norm);
  w.vector(b + "indexer.k_norm.weight", c.index_dim, &layer.index_k_norm);
}

void collect_router(const Qwen4ExpConfig& c, const std::string& b, Weights& w,
                    Qwen4ExpLayer& layer) {
  w.matrix(b + "ffn_gate_inp", c.n_experts, c.width, &layer.router);
  w.matrix(b + "ffn_gate_inp_shexp", 1, c.width, &layer.shared_gate);
  w.matrix(b + "ffn_gate_shexp", c.shared_ff, c.width, &layer.shared_gate_proj);
  w.matrix(b + "ffn_up_shexp", c.shared_ff, c.width, &layer.shared_up);
  w.matrix(b + "ffn_down_shexp", c.width, c.shared_ff, &layer.shared_down);
}

void collect_ple(const Qwen4ExpConfig& c, const std::string& b, Weights& w, Qwen4ExpLayer& layer) {
  w.matrix(b + "ple_key", c.wide(), c.width, &layer.ple_key);
  w.matrix(b + "ple_value", c.width, c.width, &layer.ple_value);
  w.vector(b + "ple_norm_key.weight", c.wide(), &layer.ple_norm_key);
  w.vector(b + "ple_norm_query.weight", c.wide(), &layer.ple_norm_query);
  w.vector(b + "ple_norm_conv.weight", c.wide(), &layer.ple_norm_conv);
  w.vector(b + "ple_conv1d.weight", int64_t{c.wide()} * c.ple_taps, &layer.ple_conv);
}

void collect_draft(const Qwen4ExpConfig& c, Weights& w, Qwen4ExpWeights& out) {
  const std::string b = format("blk.{}.nextn.", c.n_layers);
  w.matrix(b + "eh_proj", c.width, 2 * int64_t{c.width}, &out.eh_proj);
  w.vector(b + "enorm.weight", c.width, &out.enorm);
  w.vector(b + "hnorm.weight", c.wide(), &out.hnorm);
  collect_site(c, b + "hc_head_", false, w, out.draft_site);
  if (w.has(b + "shared_head_head.weight")) {
    w.matrix(b + "shared_head_head", c.n_vocab, c.width, &out.draft_output);
  }
}

}  // namespace

void collect_experts(const Qwen4ExpConfig& c, int layer, Weights& w, kernels::ExpertShape& s,
                     std::vector<memory::ExpertStore::Parts>* parts, memory::BlobFiles* files) {
  const std::string b = format("blk.{}.", layer);
  const auto ask = [&](const char* name, const Weights::ExpertMatrix& which, kernels::Weight* shape,
                       const float** scale) {
    w.experts(b + name, which, shape, scale, parts);
    if (files) files->part[static_cast<size_t>(which.part)] = w.place_of(b + name, which);
  };
  Weights::ExpertMatrix gate{
      .part = 0, .n = c.n_experts, .total_rows = c.ff, .rows = c.ff, .cols = c.width};
  Weights::ExpertMatrix up = gate;
  up.part = 1;
  if (w.has(b + "ffn_gate_up_exps.weight")) {
    gate.total_rows = up.total_rows = 2 * c.ff;
    up.first_row = c.ff;
    ask("ffn_gate_up_exps", gate, &s.gate, &s.gate_scale);
    ask("ffn_gate_up_exps", up, &s.up, &s.up_scale);
  } else {
    ask("ffn_gate_exps", gate, &s.gate, &s.gate_scale);
    ask("ffn_up_exps", up, &s.up, &s.up_scale);
  }
  ask("ffn_down_exps",
      {.part = 2, .n = c.n_experts, .total_rows = c.width, .rows = c.width, .cols = c.ff}, &s.down,
      &s.down_scale);
}

void collect_weights(const Qwen4ExpConfig& c, const LayerRange& range, Weights& w,
                     Qwen4ExpWeights& out) {
  std::vector<int> layers;
  for (int l = range.first; l < range.end; ++l) layers.push_back(l);
  if (range.last) {
    w.matrix(w.has("output.weight") ? "output" : "token_embd", c.n_vocab, c.width, &out.output);
    collect_site(c, "output_hc_", false, w, out.final_site);
    for (int l = c.n_layers; range.draft && l < c.n_blocks(); ++l) layers.push_back(l);
  }
  out.layers.resize(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    const int l = layers[i];
    const std::string b = format("blk.{}.", l);
    Qwen4ExpLayer& layer = out.layers[i];
    collect_site(c, b + "hc_attn_", true, w, layer.attention_site);
    collect_site(c, b + "hc_ffn_", true, w, layer.ffn_site);
    if (c.recurrent[static_cast<size_t>(l)]) {
      collect_delta_net(c, b, w, layer);
    } else {
      collect_attention(c, b, c.ratio[static_cast<size_t>(l)] > 0, w, layer);
    }
    collect_router(c, b, w, layer);
    const bool here = range.experts[static_cast<size_t>(l)];
    collect_experts(c, l, w, layer.experts, here ? &layer.parts : nullptr);
    if (c.is_ple_layer(l)) collect_ple(c, b, w, layer);
  }
  if (range.last && range.draft) collect_draft(c, w, out);
}

std::vector<ModelFacts::Layer> layer_bytes(const Qwen4ExpConfig& c, const gguf::Model& file) {
  std::vector<ModelFacts::Layer> layers(static_cast<size_t>(c.n_blocks()));
  for (const gguf::Tensor& tensor : file.tensors()) {
    std::string_view name = tensor.name;
    if (!name.starts_with(kBlock)) continue;
    name.remove_prefix(kBlock.size());
    size_t l = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), l);
    if (error != std::errc() || l >= layers.size()) continue;
    // A draft layer's own table is looked up by row.
    if (name.find("embed_tokens") != std::string_view::npos) continue;
    if (name.find("_exps.") != std::string_view::npos) {
      const Bytes each = tensor.n_bytes / static_cast<Bytes>(c.n_experts);
      layers[l].expert_bytes += each;
      const bool two = name.find("gate_up") != std::string_view::npos;
      layers[l].blob_bytes +=
          two ? 2 * memory::BlobShape::aligned(each / 2) : memory::BlobShape::aligned(each);
    } else {
      layers[l].dense_bytes += tensor.n_bytes;
    }
  }
  for (ModelFacts::Layer& layer : layers) {
    layer.blob_bytes = memory::SlotTable::stride(layer.blob_bytes);
  }
  return layers;
}

Bytes head_bytes(const gguf::Model& file) {
  const bool tied = file.find("output.weight") == nullptr;
  Bytes sum = 0;
  for (const gguf::Tensor& tensor : file.tensors()) {
    const std::string_view name = tensor.name;
    if (name.starts_with("output") || (tied && name == "token_embd.weight")) sum += tensor.n_bytes;
  }
  return sum;
}

Bytes bytes_per_token(const Qwen4ExpConfig& c, const gguf::Model& file) {
  const std::vector<ModelFacts::Layer> layers = layer_bytes(c, file);
  Bytes sum = head_bytes(file);
  for (int l = 0; l < c.n_layers; ++l) {
    const ModelFacts::Layer& layer = layers[static_cast<size_t>(l)];
    sum += layer.dense_bytes + static_cast<Bytes>(c.top_k) * layer.expert_bytes;
  }
  return sum;
}

}  // namespace strata::model
