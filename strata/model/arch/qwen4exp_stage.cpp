#include "strata/model/arch/qwen4exp_stage.h"

#include <algorithm>
#include <vector>

#include "strata/base/check.h"
#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/model/expert_leases.h"

namespace strata::model {
namespace {

// What a graph's node may take, and how many a layer has.
constexpr int kAheadRows = 8;

}  // namespace

Qwen4ExpStage::Qwen4ExpStage(const gguf::Model& file, const Shared& shared, size_t index,
                             Qwen4ExpExperts& experts, memory::Plan& plan)
    : shared_(shared),
      c_(shared.config),
      options_(shared.options),
      index_(index),
      weights_(file, *shared.stages.list[index].device, shared.options.packing),
      copies_(*shared.stages.list[index].device, plan),
      experts_(experts) {
  collect_weights(c_,
                  {.first = at().first_layer,
                   .end = at().end_layer,
                   .last = is_last(),
                   .draft = shared.draft,
                   .experts = experts.whole()},
                  weights_, w_);
  weights_.declare_lines(plan);
  if (experts.slots(index) == nullptr) return;
  away_.emplace(at(), shared.stages,
                AwayExperts::Shape{.max_rows = options_.chunk,
                                   .top_k = c_.top_k,
                                   .width = c_.width,
                                   .n_experts = c_.n_experts});
}

int Qwen4ExpStage::index_of(int layer) const {
  return layer < c_.n_layers ? layer - at().first_layer
                             : at().end_layer - at().first_layer + layer - c_.n_layers;
}

const Qwen4ExpLayer& Qwen4ExpStage::weights_of(int layer) const {
  return w_.layers[static_cast<size_t>(index_of(layer))];
}

Bytes Qwen4ExpStage::address_bytes() const {
  return w_.layers.size() * static_cast<size_t>(c_.n_experts) * sizeof(memory::ExpertStore::Parts);
}

// The host's table of addresses is nothing that a card can read.
void Qwen4ExpStage::load_addresses() {
  addresses_ = value_or_throw(
      at().device->allocate(address_line_, address_bytes(), at().device->work_memory()));
  const size_t row = static_cast<size_t>(c_.n_experts) * sizeof(memory::ExpertStore::Parts);
  for (size_t i = 0; i < w_.layers.size(); ++i) {
    // Of a layer that is not whole the slots have a table of their own.
    if (w_.layers[i].parts.empty()) continue;
    copies_.write(*at().stream, addresses_.data() + i * row,
                  std::as_bytes(std::span(w_.layers[i].parts)));
  }
}

View<const std::byte* const> Qwen4ExpStage::addresses(int layer) const {
  const auto* const first = reinterpret_cast<const std::byte* const*>(addresses_.data());
  return {first + int64_t{index_of(layer)} * c_.n_experts * 3, {c_.n_experts, 3}};
}

Bytes Qwen4ExpStage::carve(Bytes scratch_bytes, std::byte* base) {
  const Bytes bytes = all_.carve(c_, options_.chunk, is_last() ? options_.max_out : 0,
                                 is_last() && shared_.draft, scratch_bytes, base);
  b_ = all_;
  return bytes;
}

void Qwen4ExpStage::choose_rows() {
  int n = options_.chunk;
  for (const int few : kFewRows) {
    if (inputs_->n_rows() <= few) n = std::min(n, few);
  }
  use_rows(n);
}

void Qwen4ExpStage::use_rows(int n) {
  rows_ = inputs_->rows(index_);
  rows_.max_rows = n;
  b_ = n < options_.chunk ? all_.first(n) : all_;
}

void Qwen4ExpStage::lay_out(Qwen4ExpTables& tables, const StatePools& states,
                            const StatePools* draft_states, const StepInputs& inputs,
                            memory::Plan& plan) {
  tables_ = &tables;
  states_ = &states;
  draft_states_ = draft_states;
  inputs_ = &inputs;
  const Bytes bytes = carve(measure_scratch(), nullptr);
  buffer_line_ = plan.add({.owner = "qwen4exp",
                           .name = "activations",
                           .formula = format("{} rows, {} rows of logits", options_.chunk,
                                             is_last() ? options_.max_out : 0),
                           .where = at().device->id(),
                           .bytes = bytes});
  if (away_) away_->declare(plan);
  if (at().is_host()) return;
  // The planner does not know yet whether the layers will be whole: it keeps the room.
  if (has_graphs() || (options_.experts_apart && at().gains_by_graphs())) {
    const int n_layers = at().end_layer - at().first_layer;
    graph_line_ = plan.add({.owner = "qwen4exp",
                            .name = "graphs",
                            .formula = format("{} graphs of {} layers, up to {} nodes",
                                              kFewRows.size(), n_layers, n_graph_nodes_),
                            .where = at().device->id(),
                            .bytes = kFewRows.size() * at().device->graph_bytes(n_graph_nodes_),
                            .after_start = true});
  }
  address_line_ =
      plan.add({.owner = "qwen4exp",
                .name = "expert addresses",
                .formula = format("{} layers of {} experts", w_.layers.size(), c_.n_experts),
                .where = at().device->id(),
                .bytes = address_bytes()});
}

Bytes Qwen4ExpStage::measure_scratch() {
  carve(0, nullptr);
  rows_ = inputs_->rows(index_);
  rows_.max_rows = options_.chunk;
  OpPass pass(*at().stream, OpPass::Mode::kMeasure);
  if (index_ == 0) tables_->embed(pass.mode(), *inputs_, b_.residual);
  layers(pass);
  // The rows of n-grams are copied.
  const auto n_copies = static_cast<size_t>(std::ranges::count_if(
      c_.ple_layers, [this](int l) { return l >= at().first_layer && l < at().end_layer; }));
  n_graph_nodes_ = pass.n_ops() * Stage::nodes_per_op(*at().device) + n_copies;
  commit_states(pass);
  if (is_last()) final_head(pass, w_.final_site, w_.output);
  if (is_last() && shared_.draft) draft_layer(pass);
  return pass.peak();
}

void Qwen4ExpStage::load(const std::function<void(Bytes, Bytes)>& progress) {
  STRATA_CHECK(!options_.experts_apart);
  weights_.place(progress);
  const auto add_layers = [this](int first, int end) {
    for (int l = first; l < end; ++l) {
      if (experts_.whole(l)) experts_.store().add_layer(LayerId(l), weights_of(l).parts);
    }
  };
  add_layers(at().first_layer, at().end_layer);
  if (is_last() && shared_.draft) add_layers(c_.n_layers, c_.n_blocks());
  copies_.allocate();
  if (away_) away_->allocate();
  if (!at().is_host()) load_addresses();
  const auto scratch = static_cast<Bytes>(b_.scratch.extent(0));
  buffer_memory_ = value_or_throw(
      at().device->allocate(buffer_line_, carve(scratch, nullptr), at().device->work_memory()));
  carve(scratch, buffer_memory_.data());
}

void Qwen4ExpStage::hc_read(OpPass& pass, const HcSite& site, View<float> residual,
                            const int32_t* n_rows, View<float> u) {
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

void Qwen4ExpStage::hc_write(OpPass& pass) {
  pass.run(
      pass.ops.hc_write,
      kernels::HcWrite{.n_rows = rows().n_rows, .inj = b_.inj, .y = b_.y, .residual = b_.residual});
}

void Qwen4ExpStage::ple(OpPass& pass, int l, const Qwen4ExpLayer& w, const LayerState& state) {
  const kernels::Rows& rows = this->rows();
  if (capturing_) {
    tables_->bring_looked_up(l, b_.ple_emb);
  } else {
    tables_->gather(pass.mode(), *inputs_, l, b_.ple_emb);
  }
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

void Qwen4ExpStage::delta_net(OpPass& pass, const Qwen4ExpLayer& w, const LayerState& state) {
  const kernels::Rows& rows = this->rows();
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

void Qwen4ExpStage::attention(OpPass& pass, int l, const Qwen4ExpLayer& w,
                              const LayerState& state) {
  const kernels::Rows& rows = this->rows();
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
  const View<int32_t> blocks(b_.blocks.data(), {rows.max_rows, budget});
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

// The host has computed the choice by now. What is in RAM is computed while the rest is read.
void Qwen4ExpStage::pooled_experts(OpPass& pass, int l, kernels::ExpertFfn ffn) {
  const std::span<const int32_t> id(b_.expert_id.data(),
                                    static_cast<size_t>(inputs_->n_rows() * c_.top_k));
  experts_.heat().used(LayerId(l), id);
  wanted_.clear();
  for (const int32_t e : id) wanted_.emplace_back(e);
  std::ranges::sort(wanted_);
  wanted_.erase(std::ranges::unique(wanted_).begin(), wanted_.end());
  bool first = true;
  for_leases(experts_.store(), LayerId(l), wanted_, rest_, [&](const memory::ExpertLease& lease) {
    if (first) look_ahead(pass, l);
    ffn.parts = lease.parts;
    pass.run(pass.ops.expert_ffn, ffn);
    ffn.shared = {};  // once
    first = false;
  });
}

// The next layer's router on this layer's rows is a good guess at its choice. A prompt's rows want
// nearly all experts anyway.
void Qwen4ExpStage::look_ahead(OpPass& pass, int l) {
  const int n_rows = inputs_->n_rows(), max_rows = std::min(kAheadRows, options_.chunk);
  if (n_rows > max_rows || l + 1 >= at().end_layer || experts_.whole(l + 1)) return;
  ahead_id_.resize(static_cast<size_t>(max_rows * c_.top_k));
  ahead_weight_.resize(ahead_id_.size());
  // The logits of this layer have been used.
  const View<float> logits(b_.router.data(), {max_rows, c_.n_experts});
  pass.run(pass.ops.matmul,
           kernels::MatMul{.n_rows = rows().n_rows,
                           .x = View<const float>(b_.u.data(), {max_rows, c_.width}),
                           .out = {{{weights_of(l + 1).router, logits}}},
                           .n_out = 1});
  const View<int32_t> id(ahead_id_.data(), {max_rows, c_.top_k});
  pass.run(pass.ops.router_topk,
           kernels::RouterTopk{.n_rows = rows().n_rows,
                               .logits = logits,
                               .top_k = c_.top_k,
                               .id = id,
                               .weight = View<float>(ahead_weight_.data(), {max_rows, c_.top_k})});
  rest_.clear();
  for (int i = 0; i < n_rows * c_.top_k; ++i) rest_.emplace_back(id[i]);
  experts_.store().expect(LayerId(l + 1), rest_, memory::Urgency::kNextLayer);
}

void Qwen4ExpStage::experts(OpPass& pass, int l, const Qwen4ExpLayer& w) {
  const int32_t* n_rows = rows().n_rows;
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
    if (away_ && !experts_.whole(l)) away_->measure(pass, experts_.host_shape(l));
  } else if (experts_.whole(l)) {
    memory::ExpertLease lease = experts_.store().acquire(LayerId(l));
    ffn.parts = at().is_host() ? lease.parts : addresses(l);
    pass.run(pass.ops.expert_ffn, ffn);
    if (lease.lease) pass.stream().release_after(std::move(lease.lease));
  } else if (at().is_host()) {
    pooled_experts(pass, l, ffn);
  } else {
    // The host learns the choice, and computes its share beside the card.
    memory::CardSlots& slots = *experts_.slots(index_);
    away_->fetch(b_.expert_id, b_.u, inputs_->n_rows());
    ffn.parts = slots.parts(LayerId(l));
    pass.run(pass.ops.expert_ffn, ffn);
    away_->compute(LayerId(l), experts_.host_shape(l), experts_.store(), slots, experts_.heat(),
                   b_.expert_out);
  }
  pass.run(pass.ops.expert_combine, kernels::ExpertCombine{.n_rows = n_rows,
                                                           .expert = b_.expert_out,
                                                           .id = b_.expert_id,
                                                           .weight = b_.weight,
                                                           .shared = b_.shared,
                                                           .gate_logit = b_.shared_gate,
                                                           .y = b_.y});
}

void Qwen4ExpStage::layer(OpPass& pass, int l, const LayerState& state) {
  const Qwen4ExpLayer& w = weights_of(l);
  const int32_t* n_rows = rows().n_rows;
  const bool recurrent = c_.recurrent[static_cast<size_t>(l)];
  at().stream->set_place({"layer", l});
  if (c_.is_ple_layer(l)) ple(pass, l, w, state);
  hc_read(pass, w.attention_site, b_.residual, n_rows, b_.u);
  if (recurrent) {
    delta_net(pass, w, state);
  } else {
    attention(pass, l, w, state);
    // The selection overlays the experts' arrays: look at it now.
    if (observer_ && !pass.measuring()) observe(l, true);
  }
  hc_write(pass);
  hc_read(pass, w.ffn_site, b_.residual, n_rows, b_.u);
  experts(pass, l, w);
  hc_write(pass);
  if (observer_ && !pass.measuring()) observe(l, false);
}

bool Qwen4ExpStage::has_ngrams() const {
  return std::ranges::any_of(c_.ple_layers,
                             [this](int l) { return l >= at().first_layer && l < at().end_layer; });
}

void Qwen4ExpStage::layers(OpPass& pass) {
  for (int l = at().first_layer; l < at().end_layer; ++l) layer(pass, l, states_->layer(l));
}

void Qwen4ExpStage::final_head(OpPass& pass, const HcSite& site, const kernels::Weight& output) {
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

void Qwen4ExpStage::draft_layer(OpPass& pass) {
  const kernels::Rows& rows = this->rows();
  const int64_t n = rows.max_rows;
  tables_->embed_draft(pass.mode(), *inputs_, b_.draft_e);
  pass.run(pass.ops.copy_rows,
           kernels::CopyRows{.n_rows = rows.n_rows,
                             .index = View<const int32_t>(inputs_->source(), {n}),
                             .x = all_.residual,  // rows of a longer step before
                             .out = b_.draft_residual});
  pass.run(pass.ops.draft_input,
           kernels::DraftInput{.n_rows = rows.n_rows,
                               .e = View<const float>(b_.draft_e.data(), {n, c_.width}),
                               .residual = b_.draft_residual,
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

bool Qwen4ExpStage::has_graphs() const {
  return at().gains_by_graphs() && !away_ &&
         at().device->trips().on(device::Feature::kGraphs, at().device->id());
}

device::Graph Qwen4ExpStage::record(int n_rows) {
  device::Stream& stream = *at().stream;
  use_rows(n_rows);
  value_or_throw(stream.begin_capture());
  capturing_ = true;
  try {
    OpPass pass = run();
    layers(pass);
  } catch (...) {
    capturing_ = false;
    static_cast<void>(stream.end_capture(graph_line_));
    throw;
  }
  capturing_ = false;
  return value_or_throw(stream.end_capture(graph_line_));
}

// What was recorded gives its memory back: whatever else wants it has more need of it.
void Qwen4ExpStage::trip_graphs(const std::string& what, const Error& why) {
  if (why.code() == ErrorCode::kDeviceLost) throw why;
  at().device->trips().trip(device::Feature::kGraphs, at().device->id(),
                            format("{}: {}; steps are queued op by op", what, why.what()));
  graphs_ = {};
}

// False: it cannot be had.
bool Qwen4ExpStage::record_class(size_t i) {
  if (!has_graphs() || kFewRows[i] >= options_.chunk) return false;
  try {
    graphs_[i] = record(kFewRows[i]);
    return true;
  } catch (const Error& e) {
    trip_graphs(format("a graph of layers {} to {} for steps of {} rows", at().first_layer,
                       at().end_layer - 1, kFewRows[i]),
                e);
  }
  return false;
}

// The last class may never come.
void Qwen4ExpStage::record() {
  for (size_t i = 0; i + 1 < kFewRows.size(); ++i) record_class(i);
}

bool Qwen4ExpStage::replayed() {
  const auto it = std::ranges::find(kFewRows, rows_.max_rows);
  if (it == kFewRows.end() || rows_.max_rows >= options_.chunk || observer_ != nullptr ||
      shared_.cautious || !has_graphs()) {
    return false;
  }
  const auto i = static_cast<size_t>(it - kFewRows.begin());
  if (!graphs_[i] && !record_class(i)) return false;
  try {
    for (const int l : c_.ple_layers) {
      if (has_ngrams()) tables_->look_up(*inputs_, l);
    }
    at().stream->set_place({"a graph of rows", rows_.max_rows});
    at().stream->replay(graphs_[i]);
    return true;
  } catch (const Error& e) {
    trip_graphs(format("the graph for steps of {} rows", rows_.max_rows), e);
  }
  return false;
}

void Qwen4ExpStage::forward(LayerObserver* observer) {
  observer_ = observer;
  choose_rows();
  if (index_ == 0) tables_->embed(OpPass::Mode::kRun, *inputs_, b_.residual);
  if (replayed()) return;
  OpPass pass = run();
  layers(pass);
}

void Qwen4ExpStage::head() {
  OpPass pass = run();
  final_head(pass, w_.final_site, w_.output);
}

void Qwen4ExpStage::draft(LayerObserver* observer) {
  STRATA_CHECK(shared_.draft);
  observer_ = observer;
  choose_rows();
  OpPass pass = run();
  draft_layer(pass);
}

void Qwen4ExpStage::draft_head() {
  OpPass pass = run();
  final_head(pass, w_.draft_site, w_.draft_output ? w_.draft_output : w_.output);
}

void Qwen4ExpStage::commit_states(OpPass& pass) {
  const kernels::Rows& rows = this->rows();
  for (int l = at().first_layer; l < at().end_layer; ++l) {
    const LayerState& state = states_->layer(l);
    for (const kernels::Tail* tail : {&state.raw_keys, &state.conv, &state.ple}) {
      if (tail->state.rank() == 0) continue;
      pass.run(pass.ops.tail_commit,
               kernels::TailCommit{.rows = rows, .kept = inputs_->kept(index_), .tail = *tail});
    }
    if (state.delta.s.rank() == 0) continue;
    pass.run(pass.ops.gdn_commit, kernels::GdnCommit{.rows = rows,
                                                     .kept = inputs_->kept(index_),
                                                     .key_heads = c_.gdn_key_heads,
                                                     .value_heads = c_.gdn_value_heads,
                                                     .dk = c_.gdn_dk,
                                                     .dv = c_.gdn_dv,
                                                     .state = state.delta});
  }
}

void Qwen4ExpStage::commit() {
  choose_rows();
  OpPass pass = run();
  commit_states(pass);
}

void Qwen4ExpStage::observe(int l, bool selected) {
  const int64_t n = inputs_->n_rows();
  const auto rows = [&]<class T>(const View<T>& from, int64_t width) {
    return copies_.read(*at().stream, static_cast<const T*>(from.data()), n * width);
  };
  if (selected) {
    const int budget = c_.index_budget(l), ratio = c_.ratio[static_cast<size_t>(l)];
    const std::vector<int32_t> blocks = rows(b_.blocks, budget);
    std::vector<int32_t> n_blocks = rows(b_.n_blocks, 1);
    // Nothing was selected, and what lies there is of another layer.
    if (ratio == 0) std::ranges::fill(n_blocks, -1);
    observer_->selection(l, ratio, View<const int32_t>(blocks.data(), {n, budget}),
                         View<const int32_t>(n_blocks.data(), {n}));
    return;
  }
  const std::vector<float> residual = rows(b_.residual, int64_t{c_.streams} * c_.width);
  observer_->residual(l, View<const float>(residual.data(), {n, c_.streams, c_.width}));
  const std::vector<int32_t> id = rows(b_.expert_id, c_.top_k);
  const std::vector<float> weight = rows(b_.weight, c_.top_k);
  observer_->experts(l, View<const int32_t>(id.data(), {n, c_.top_k}),
                     View<const float>(weight.data(), {n, c_.top_k}));
}

}  // namespace strata::model
