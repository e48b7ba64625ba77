#include "strata/model/arch/qwen4exp.h"

#include <algorithm>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/kernels/op_table.h"
#include "strata/model/arch/qwen4exp_buffers.h"
#include "strata/model/arch/qwen4exp_config.h"
#include "strata/model/arch/qwen4exp_weights.h"
#include "strata/model/ngram.h"

namespace strata::model {
namespace {

using kernels::Weight;

class Qwen4Exp final : public Model {
 public:
  Qwen4Exp(const gguf::Model& file, Qwen4ExpConfig config, const ModelOptions& options,
           device::Device& device, memory::Plan& plan);

  const ModelInfo& info() const override { return info_; }
  void load(const std::function<void(Bytes, Bytes)>& progress) override;

  void forward(device::Stream& stream) override;
  void head(device::Stream& stream) override;
  void draft(device::Stream& stream) override;
  void draft_head(device::Stream& stream) override;
  void commit(device::Stream& stream) override;

  View<float> residual() override { return b_.residual; }
  View<float> logits() override { return b_.logits; }

 protected:
  void ngram_rows(std::span<const int32_t> ids, size_t first,
                  std::vector<int64_t>& out) const override {
    ngram_.append_rows(ids, first, out);
  }
  const Rope& rope() const override { return rope_; }
  int index_ratio() const override { return ratio_; }

 private:
  // One pass over the ops: run, or while laying out only ask how much scratch they want.
  class Pass;

  StateSpec state_spec(bool draft) const;
  void layer(Pass& pass, int l, const LayerState& state);
  void ple(Pass& pass, const Qwen4ExpLayer& w, const LayerState& state);
  void delta_net(Pass& pass, const Qwen4ExpLayer& w, const LayerState& state);
  void attention(Pass& pass, int l, const Qwen4ExpLayer& w, const LayerState& state);
  void experts(Pass& pass, int l, const Qwen4ExpLayer& w);
  void hc_read(Pass& pass, const HcSite& site, View<float> residual, const int32_t* n_rows,
               View<float> u);
  void hc_write(Pass& pass);
  void trunk(Pass& pass);
  void trunk_head(Pass& pass, const HcSite& site, const Weight& output);
  void draft_pass(Pass& pass);
  Bytes measure_scratch();
  void observe(device::Stream& stream, int l, bool selected);

  Qwen4ExpConfig c_;
  ModelOptions options_;
  device::Device& device_;
  bool draft_ = false;
  int ratio_ = 0;
  Rope rope_;
  NgramHash ngram_;
  ModelInfo info_;
  Weights weights_;
  Qwen4ExpWeights w_;
  memory::ExpertStore store_;
  PlanLineId buffer_line_;
  device::Allocation buffer_memory_;
  Qwen4ExpBuffers b_;
};

class Qwen4Exp::Pass {
 public:
  Pass(device::Stream& stream, View<std::byte> scratch, bool measuring)
      : ops(kernels::ops_for(stream)), stream_(stream), scratch_(scratch), measuring_(measuring) {}

  const kernels::OpTable& ops;

  template <class Args>
  void run(const kernels::Op<Args>& op, Args args) {
    if constexpr (requires { args.scratch; }) {
      if (measuring_) {
        peak_ = std::max(peak_, op.scratch_bytes(stream_, args));
        return;
      }
      args.scratch = scratch_;
    } else if (measuring_) {
      return;
    }
    op.run(stream_, args);
  }
  bool measuring() const { return measuring_; }
  device::Stream& stream() const { return stream_; }
  Bytes peak() const { return peak_; }

 private:
  device::Stream& stream_;
  View<std::byte> scratch_;
  bool measuring_;
  Bytes peak_ = 0;
};

RopeSettings rope_settings(const Qwen4ExpConfig& c) {
  return {.dims = c.rope_dims,
          .base = c.rope_base,
          .sections = c.rope_sections,
          .yarn_factor = c.yarn_factor,
          .yarn_context = c.yarn_context};
}

// One ratio for all layers: block positions are laid out once a row.
int common_ratio(const Qwen4ExpConfig& c) {
  int ratio = 0;
  for (int r : c.ratio) {
    if (r == 0 || r == ratio) continue;
    if (ratio != 0) {
      throw Error(ErrorCode::kUnsupported,
                  format("attention layers with index blocks of {} and of {} tokens", ratio, r));
    }
    ratio = r;
  }
  return ratio;
}

Qwen4Exp::Qwen4Exp(const gguf::Model& file, Qwen4ExpConfig config, const ModelOptions& options,
                   device::Device& device, memory::Plan& plan)
    : c_(std::move(config)),
      options_(options),
      device_(device),
      draft_(options.draft && c_.n_draft_layers > 0),
      ratio_(common_ratio(c_)),
      rope_(rope_settings(c_)),
      ngram_{.order = c_.ple_ngram,
             .heads = c_.ple_heads,
             .eos = c_.ple_eos,
             .multipliers = c_.ple_multipliers,
             .offsets = c_.ple_offsets,
             .sizes = c_.ple_sizes},
      weights_(file, device, options.packing),
      store_(c_.n_blocks()) {
  collect_weights(c_, draft_, weights_, w_);
  info_ = {.architecture = "qwen4exp",
           .name = c_.name,
           .n_layers = c_.n_layers,
           .n_vocab = c_.n_vocab,
           .width = c_.width,
           .streams = c_.streams,
           .trained_context = c_.trained_context,
           .yarn_factor = c_.yarn_factor,
           .yarn_context = c_.yarn_context,
           .n_experts = c_.n_experts,
           .top_k = c_.top_k,
           .has_draft = draft_,
           .weights = weights_.bytes(),
           .bytes_per_token = bytes_per_token(c_, file)};
  weights_.declare_lines(plan);
  states_ = std::make_unique<StatePools>(state_spec(false), device, plan);
  if (draft_) draft_states_ = std::make_unique<StatePools>(state_spec(true), device, plan);
  inputs_ = std::make_unique<StepInputs>(
      StepShape{.max_rows = options.chunk,
                .max_seqs = options.slots,
                .max_out = options.max_out,
                .slots = options.slots,
                .pages_per_slot = states_->spec().pages_per_slot(),
                .streams = c_.streams,
                .pairs = c_.rope_pairs(),
                .ple_rows = c_.ple_layers.empty() ? 0 : c_.n_ple_rows()},
      device, plan);
  const Bytes bytes =
      b_.carve(c_, options.chunk, options.max_out, draft_, measure_scratch(), nullptr);
  buffer_line_ =
      plan.add({.owner = "qwen4exp",
                .name = "activations",
                .formula = format("{} rows, {} rows of logits", options.chunk, options.max_out),
                .where = device.kind() == device::Kind::kHost ? device::kHostId : device.id(),
                .bytes = bytes});
}

StateSpec Qwen4Exp::state_spec(bool draft) const {
  StateSpec spec{.name = draft ? "draft" : "trunk",
                 .slots = options_.slots,
                 .max_context = options_.max_context,
                 .window = options_.window,
                 .cache = options_.cache};
  const int first = draft ? c_.n_layers : 0, end = draft ? c_.n_blocks() : c_.n_layers;
  for (int l = first; l < end; ++l) {
    LayerStateSpec s;
    if (c_.recurrent[static_cast<size_t>(l)]) {
      s.key_heads = c_.gdn_key_heads;
      s.value_heads = c_.gdn_value_heads;
      s.delta_dk = c_.gdn_dk;
      s.delta_dv = c_.gdn_dv;
      s.conv_depth = c_.gdn_taps - 1;
      s.conv_width = c_.gdn_channels();
    } else {
      s.kv_heads = c_.kv_heads;
      s.dk = c_.dk;
      s.dv = c_.dv;
      s.ratio = c_.ratio[static_cast<size_t>(l)];
      s.index_dim = s.ratio > 0 ? c_.index_dim : 0;
    }
    if (c_.is_ple_layer(l)) {
      s.ple_depth = c_.ple_depth();
      s.ple_width = c_.wide();
    }
    spec.layers.push_back(s);
  }
  return spec;
}

Bytes Qwen4Exp::measure_scratch() {
  b_.carve(c_, options_.chunk, options_.max_out, draft_, 0, nullptr);
  const std::unique_ptr<device::Stream> stream = device_.make_stream("layout");
  Pass pass(*stream, {}, true);
  trunk(pass);
  trunk_head(pass, w_.final_site, w_.output);
  if (draft_) draft_pass(pass);
  return pass.peak();
}

void Qwen4Exp::load(const std::function<void(Bytes, Bytes)>& progress) {
  weights_.place(progress);
  for (size_t l = 0; l < w_.layers.size(); ++l) {
    store_.add_layer(LayerId(static_cast<int32_t>(l)), w_.layers[l].parts);
  }
  states_->allocate();
  if (draft_states_) draft_states_->allocate();
  inputs_->allocate();
  const bool host = device_.kind() == device::Kind::kHost;
  const Bytes scratch = static_cast<Bytes>(b_.scratch.extent(0));
  const Bytes bytes = b_.carve(c_, options_.chunk, options_.max_out, draft_, scratch, nullptr);
  buffer_memory_ = value(
      device_.allocate(buffer_line_, bytes, host ? device::Mem::kPageable : device::Mem::kDevice));
  b_.carve(c_, options_.chunk, options_.max_out, draft_, scratch, buffer_memory_.data());
}

void Qwen4Exp::hc_read(Pass& pass, const HcSite& site, View<float> residual, const int32_t* n_rows,
                       View<float> u) {
  pass.run(pass.ops.hc_read, kernels::HcRead{.n_rows = n_rows,
                                             .residual = residual,
                                             .norm = site.norm,
                                             .down = site.down,
                                             .up = site.up,
                                             .inject = site.inject,
                                             .eps = c_.eps,
                                             .u = u,
                                             .inj = b_.inj});
}

void Qwen4Exp::hc_write(Pass& pass) {
  pass.run(
      pass.ops.hc_write,
      kernels::HcWrite{
          .n_rows = inputs_->rows().n_rows, .inj = b_.inj, .y = b_.y, .residual = b_.residual});
}

void Qwen4Exp::ple(Pass& pass, const Qwen4ExpLayer& w, const LayerState& state) {
  const kernels::Rows& rows = inputs_->rows();
  pass.run(pass.ops.gather,
           kernels::Gather{
               .n_rows = rows.n_rows,
               .index = View<const int64_t>(inputs_->ple_rows(), {options_.chunk, c_.n_ple_rows()}),
               .table = w_.ple_table,
               .out = b_.ple_emb});
  pass.run(pass.ops.matmul,
           kernels::MatMul{.n_rows = rows.n_rows,
                           .x = b_.ple_emb,
                           .out = {{{w.ple_key, b_.ple_key}, {w.ple_value, b_.ple_value}}},
                           .n_out = 2});
  pass.run(pass.ops.ple_mix, kernels::PleMix{.n_rows = rows.n_rows,
                                             .key = b_.ple_key,
                                             .value = b_.ple_value,
                                             .residual = b_.residual,
                                             .norm_key = w.ple_norm_key,
                                             .norm_query = w.ple_norm_query,
                                             .norm_conv = w.ple_norm_conv,
                                             .eps = c_.eps,
                                             .z = b_.ple_z,
                                             .normed = b_.ple_normed});
  pass.run(pass.ops.conv, kernels::Conv{.rows = rows,
                                        .x = b_.ple_normed,
                                        .w = w.ple_conv,
                                        .taps = c_.ple_taps,
                                        .dilation = c_.ple_ngram,
                                        .z = b_.ple_z,
                                        .tail = state.ple,
                                        .out = b_.residual});
}

void Qwen4Exp::delta_net(Pass& pass, const Qwen4ExpLayer& w, const LayerState& state) {
  const kernels::Rows& rows = inputs_->rows();
  pass.run(pass.ops.matmul,
           kernels::MatMul{
               .n_rows = rows.n_rows,
               .x = b_.u,
               .out = {{{w.qkv, b_.qkv}, {w.z, b_.z}, {w.beta, b_.beta}, {w.alpha, b_.alpha}}},
               .n_out = 4});
  pass.run(pass.ops.conv, kernels::Conv{.rows = rows,
                                        .x = b_.qkv,
                                        .w = w.conv,
                                        .taps = c_.gdn_taps,
                                        .dilation = 1,
                                        .tail = state.conv,
                                        .out = b_.conv});
  pass.run(pass.ops.gdn, kernels::Gdn{.rows = rows,
                                      .qkv = b_.conv,
                                      .beta = b_.beta,
                                      .alpha = b_.alpha,
                                      .a = w.a,
                                      .dt = w.dt,
                                      .key_heads = c_.gdn_key_heads,
                                      .value_heads = c_.gdn_value_heads,
                                      .dk = c_.gdn_dk,
                                      .dv = c_.gdn_dv,
                                      .eps = c_.eps,
                                      .state = state.delta,
                                      .o = b_.o});
  pass.run(pass.ops.gated_norm, kernels::GatedNorm{.n_rows = rows.n_rows,
                                                   .o = b_.o,
                                                   .z = b_.z,
                                                   .w = w.delta_norm,
                                                   .dv = c_.gdn_dv,
                                                   .eps = c_.eps,
                                                   .out = b_.gated});
  pass.run(pass.ops.matmul,
           kernels::MatMul{
               .n_rows = rows.n_rows, .x = b_.gated, .out = {{{w.delta_out, b_.y}}}, .n_out = 1});
}

void Qwen4Exp::attention(Pass& pass, int l, const Qwen4ExpLayer& w, const LayerState& state) {
  const kernels::Rows& rows = inputs_->rows();
  const bool sparse = c_.ratio[static_cast<size_t>(l)] > 0;
  const int stride = c_.dk + c_.dv, pairs = c_.rope_pairs(), budget = c_.index_budget(l);
  kernels::MatMul project{.n_rows = rows.n_rows,
                          .x = b_.u,
                          .out = {{{w.q, b_.q_gate}, {w.k, b_.k_raw}, {w.v, b_.v}}},
                          .n_out = 3};
  if (sparse) {
    project.out[3] = {w.index_q, b_.index_q_raw};
    project.out[4] = {w.index_k, b_.index_k_raw};
    project.n_out = 5;
  }
  pass.run(pass.ops.matmul, project);

  const auto norm_rope = [&](View<float> x, const float* norm, int heads, int dim, int head_stride,
                             View<float> out) {
    pass.run(pass.ops.qk_norm_rope, kernels::QkNormRope{.rows = rows,
                                                        .x = x,
                                                        .w = norm,
                                                        .heads = heads,
                                                        .dim = dim,
                                                        .head_stride = head_stride,
                                                        .pairs = pairs,
                                                        .eps = c_.eps,
                                                        .out = out});
  };
  norm_rope(b_.q_gate, w.q_norm, c_.heads, c_.dk, stride, b_.q);
  norm_rope(b_.k_raw, w.k_norm, c_.kv_heads, c_.dk, c_.dk, b_.k);
  pass.run(pass.ops.kv_append,
           kernels::KvAppend{.rows = rows, .k = b_.k, .v = b_.v, .pool = state.kv});

  // Layers differ in budget: the first rows of the array, as narrow as this layer needs.
  const View<int32_t> blocks(b_.blocks.data(), {options_.chunk, budget});
  if (sparse) {
    norm_rope(b_.index_q_raw, w.index_q_norm, c_.index_heads, c_.index_dim, c_.index_dim,
              b_.index_q);
    pass.run(pass.ops.pool_keys, kernels::PoolKeys{.rows = rows,
                                                   .raw = b_.index_k_raw,
                                                   .w = w.index_k_norm,
                                                   .pairs = pairs,
                                                   .eps = c_.eps,
                                                   .tail = state.raw_keys,
                                                   .pool = state.kv});
    pass.run(pass.ops.qsa_select, kernels::QsaSelect{.rows = rows,
                                                     .q = b_.index_q,
                                                     .heads = c_.index_heads,
                                                     .budget = budget,
                                                     .max_context = options_.max_context,
                                                     .pool = state.kv,
                                                     .blocks = blocks,
                                                     .n_blocks = b_.n_blocks});
  }
  pass.run(pass.ops.qsa_attend, kernels::QsaAttend{.rows = rows,
                                                   .q = b_.q,
                                                   .gate = b_.q_gate,
                                                   .heads = c_.heads,
                                                   .gate_stride = stride,
                                                   .gate_offset = c_.dk,
                                                   .budget = budget,
                                                   .max_context = options_.max_context,
                                                   .pool = state.kv,
                                                   .blocks = blocks,
                                                   .n_blocks = b_.n_blocks,
                                                   .out = b_.attended});
  pass.run(pass.ops.matmul,
           kernels::MatMul{
               .n_rows = rows.n_rows, .x = b_.attended, .out = {{{w.out, b_.y}}}, .n_out = 1});
}

void Qwen4Exp::experts(Pass& pass, int l, const Qwen4ExpLayer& w) {
  const int32_t* n_rows = inputs_->rows().n_rows;
  pass.run(pass.ops.matmul,
           kernels::MatMul{.n_rows = n_rows,
                           .x = b_.u,
                           .out = {{{w.router, b_.router}, {w.shared_gate, b_.shared_gate}}},
                           .n_out = 2});
  pass.run(pass.ops.router_topk, kernels::RouterTopk{.n_rows = n_rows,
                                                     .logits = b_.router,
                                                     .top_k = c_.top_k,
                                                     .id = b_.expert_id,
                                                     .weight = b_.weight});
  kernels::ExpertFfn ffn{.n_rows = n_rows,
                         .x = b_.u,
                         .id = b_.expert_id,
                         .parts = View<const std::byte* const>(nullptr, {c_.n_experts, 3}),
                         .shape = w.experts,
                         .shared = {.gate = w.shared_gate_proj,
                                    .up = w.shared_up,
                                    .down = w.shared_down,
                                    .y = b_.shared},
                         .out = b_.expert_out};
  if (pass.measuring()) {
    pass.run(pass.ops.expert_ffn, ffn);
  } else {
    memory::ExpertLease lease = store_.acquire(LayerId(l));
    ffn.parts = lease.parts;
    pass.run(pass.ops.expert_ffn, ffn);
    if (lease.lease) pass.stream().release_after(std::move(lease.lease));
  }
  pass.run(pass.ops.expert_combine, kernels::ExpertCombine{.n_rows = n_rows,
                                                           .expert = b_.expert_out,
                                                           .id = b_.expert_id,
                                                           .weight = b_.weight,
                                                           .shared = b_.shared,
                                                           .gate_logit = b_.shared_gate,
                                                           .y = b_.y});
}

void Qwen4Exp::layer(Pass& pass, int l, const LayerState& state) {
  const Qwen4ExpLayer& w = w_.layers[static_cast<size_t>(l)];
  const int32_t* n_rows = inputs_->rows().n_rows;
  const bool recurrent = c_.recurrent[static_cast<size_t>(l)];
  if (c_.is_ple_layer(l)) ple(pass, w, state);
  hc_read(pass, w.attention_site, b_.residual, n_rows, b_.u);
  if (recurrent) {
    delta_net(pass, w, state);
  } else {
    attention(pass, l, w, state);
    // The selection overlays the experts' arrays: look at it now.
    if (observer_ && !pass.measuring()) observe(pass.stream(), l, true);
  }
  hc_write(pass);
  hc_read(pass, w.ffn_site, b_.residual, n_rows, b_.u);
  experts(pass, l, w);
  hc_write(pass);
  if (observer_ && !pass.measuring()) observe(pass.stream(), l, false);
}

void Qwen4Exp::trunk(Pass& pass) {
  const kernels::Rows& rows = inputs_->rows();
  pass.run(pass.ops.embed, kernels::Embed{.n_rows = rows.n_rows,
                                          .id = View<const int32_t>(rows.id, {options_.chunk}),
                                          .table = w_.embedding,
                                          .out = b_.residual,
                                          .copies = c_.streams});
  for (int l = 0; l < c_.n_layers; ++l) layer(pass, l, states_->layer(l));
}

void Qwen4Exp::trunk_head(Pass& pass, const HcSite& site, const Weight& output) {
  const int32_t* n_out = inputs_->n_out_rows();
  pass.run(pass.ops.copy_rows,
           kernels::CopyRows{.n_rows = n_out,
                             .index = View<const int32_t>(inputs_->out_index(), {options_.max_out}),
                             .x = b_.residual,
                             .out = b_.out_residual});
  hc_read(pass, site, b_.out_residual, n_out, b_.out_u);
  pass.run(
      pass.ops.matmul,
      kernels::MatMul{.n_rows = n_out, .x = b_.out_u, .out = {{{output, b_.logits}}}, .n_out = 1});
}

void Qwen4Exp::draft_pass(Pass& pass) {
  const kernels::Rows& rows = inputs_->rows();
  const int64_t n = options_.chunk;
  pass.run(pass.ops.embed,
           kernels::Embed{.n_rows = rows.n_rows,
                          .id = View<const int32_t>(rows.id, {n}),
                          .table = w_.draft_embedding ? w_.draft_embedding : w_.embedding,
                          .out = b_.draft_e,
                          .copies = 1});
  pass.run(pass.ops.draft_input,
           kernels::DraftInput{.n_rows = rows.n_rows,
                               .e = View<const float>(b_.draft_e.data(), {n, c_.width}),
                               .residual = b_.residual,
                               .enorm = w_.enorm,
                               .hnorm = w_.hnorm,
                               .eps = c_.eps,
                               .per_stream = c_.draft_norm_per_stream,
                               .out = b_.draft_pairs});
  // For the projection each stream of a row is a row of its own.
  const int64_t n_streams = n * c_.streams;
  pass.run(pass.ops.matmul,
           kernels::MatMul{
               .n_rows = inputs_->n_stream_rows(),
               .x = View<const float>(b_.draft_pairs.data(), {n_streams, 2 * int64_t{c_.width}}),
               .out = {{{w_.eh_proj, View<float>(b_.residual.data(), {n_streams, c_.width})}}},
               .n_out = 1});
  layer(pass, c_.n_layers, draft_states_->layer(0));
}

void Qwen4Exp::forward(device::Stream& stream) {
  Pass pass(stream, b_.scratch, false);
  trunk(pass);
}

void Qwen4Exp::head(device::Stream& stream) {
  Pass pass(stream, b_.scratch, false);
  trunk_head(pass, w_.final_site, w_.output);
}

void Qwen4Exp::draft(device::Stream& stream) {
  STRATA_CHECK(draft_);
  Pass pass(stream, b_.scratch, false);
  draft_pass(pass);
}

void Qwen4Exp::draft_head(device::Stream& stream) {
  Pass pass(stream, b_.scratch, false);
  trunk_head(pass, w_.draft_site, w_.draft_output ? w_.draft_output : w_.output);
}

void Qwen4Exp::commit(device::Stream& stream) {
  const kernels::OpTable& ops = kernels::ops_for(stream);
  const kernels::Rows& rows = inputs_->rows();
  for (int l = 0; l < c_.n_layers; ++l) {
    const LayerState& state = states_->layer(l);
    for (const kernels::Tail* tail : {&state.raw_keys, &state.conv, &state.ple}) {
      if (!tail->state) continue;
      ops.tail_commit.run(stream, {.rows = rows, .kept = inputs_->kept(), .tail = *tail});
    }
    if (!state.delta.s) continue;
    ops.gdn_commit.run(stream, {.rows = rows,
                                .kept = inputs_->kept(),
                                .key_heads = c_.gdn_key_heads,
                                .value_heads = c_.gdn_value_heads,
                                .dk = c_.gdn_dk,
                                .dv = c_.gdn_dv,
                                .state = state.delta});
  }
}

void Qwen4Exp::observe(device::Stream& stream, int l, bool selected) {
  if (!stream.drain({"observer", "layer"}, device::Deadline::within(std::chrono::minutes(5)))) {
    throw Error(ErrorCode::kDevice, format("layer {} did not end within 5 minutes", l));
  }
  const int64_t n = inputs_->n_rows();
  if (selected) {
    const int budget = c_.index_budget(l);
    observer_->selection(l, c_.ratio[static_cast<size_t>(l)],
                         View<const int32_t>(b_.blocks.data(), {n, budget}),
                         View<const int32_t>(b_.n_blocks.data(), {n}));
    return;
  }
  observer_->residual(l, View<const float>(b_.residual.data(), {n, c_.streams, c_.width}));
  observer_->experts(l, View<const int32_t>(b_.expert_id.data(), {n, c_.top_k}),
                     View<const float>(b_.weight.data(), {n, c_.top_k}));
}

// What can be laid out at all: indexes are 32 bits wide.
void require_sizes(const ModelOptions& options) {
  constexpr int kMaxRows = 1 << 20, kMaxSlots = 1 << 16;
  constexpr int64_t kMaxTokens = int64_t{1} << 30;  // of all slots
  const auto require = [](const char* name, int64_t value, int64_t max) {
    if (value >= 1 && value <= max) return;
    throw Error(ErrorCode::kInvalidArgument,
                format("{} is {}, not between 1 and {}", name, value, max));
  };
  require("--prefill", options.chunk, kMaxRows);
  require("the rows of logits", options.max_out, kMaxRows);
  require("the window", options.window, kMaxRows);
  require("--batch", options.slots, kMaxSlots);
  require("--max-context", options.max_context, kMaxTokens / options.slots);
}

void apply_options(const ModelOptions& options, Qwen4ExpConfig& c) {
  require_sizes(options);
  if (options.draft_norm_per_stream) c.draft_norm_per_stream = *options.draft_norm_per_stream;
  if (options.yarn_factor > 0) {
    if (!(options.yarn_factor >= 1 && options.yarn_factor <= 1024)) {
      throw Error(ErrorCode::kInvalidArgument,
                  format("a rope scale of {} is not between 1 and 1024", options.yarn_factor));
    }
    c.yarn_factor = options.yarn_factor;
    c.yarn_context = options.yarn_context > 0 ? options.yarn_context : c.trained_context;
  }
  if (options.max_context > c.trained_context && c.yarn_factor <= 1) {
    throw Error(ErrorCode::kInvalidArgument,
                format("a context of {} tokens is asked for, {} was trained on {}: lower "
                       "--max-context, or extend it with --rope-scaling yarn --rope-scale {}",
                       options.max_context, c.name, c.trained_context,
                       (options.max_context + c.trained_context - 1) / c.trained_context));
  }
}

}  // namespace

std::unique_ptr<Model> open_qwen4exp(const gguf::Model& file, const ModelOptions& options,
                                     device::Device& device, memory::Plan& plan) {
  Qwen4ExpConfig config = read_qwen4exp_config(file);
  apply_options(options, config);
  return std::make_unique<Qwen4Exp>(file, std::move(config), options, device, plan);
}

ModelFacts qwen4exp_facts(const gguf::Model& file) {
  const Qwen4ExpConfig c = read_qwen4exp_config(file);
  ModelFacts facts{.architecture = "qwen4exp",
                   .trained_context = c.trained_context,
                   .scaled_context = c.trained_context,
                   .has_draft = c.n_draft_layers > 0,
                   .draft_norm_per_stream = c.draft_norm_per_stream};
  if (c.yarn_factor > 1) {
    facts.scaled_context =
        std::max(c.trained_context,
                 static_cast<int64_t>(static_cast<double>(c.yarn_context) * c.yarn_factor));
  }
  for (int l = 0; l < c.n_layers; ++l) {
    const gguf::Tensor* k = file.find(format("blk.{}.attn_k.weight", l));
    if (k) facts.f32_attention = k->type->type == quant::Type::kF32;
  }
  return facts;
}

}  // namespace strata::model
