#include "strata/model/arch/qwen4exp_tables.h"

#include <algorithm>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::model {
namespace {

void require_ngram_rows(const Qwen4ExpConfig& c, const gguf::Tensor& table) {
  const auto rows = static_cast<uint64_t>(table.n_rows());
  for (size_t h = 0; h < c.ple_sizes.size(); ++h) {
    if (c.ple_offsets[h] <= rows && c.ple_sizes[h] <= rows - c.ple_offsets[h]) continue;
    throw Error(ErrorCode::kCorruptFile,
                format("n-gram head {} ends at row {} of {} in {}", h,
                       c.ple_offsets[h] + c.ple_sizes[h], rows, table.name));
  }
}

}  // namespace

Qwen4ExpTables::Qwen4ExpTables(const gguf::Model& file, const Qwen4ExpConfig& config,
                               const ModelOptions& options, bool draft, const Stages& stages,
                               memory::Plan& plan)
    : c_(config),
      options_(options),
      stages_(stages),
      weights_(file, *stages.host, kernels::Packing::kGguf, "tables") {
  weights_.table("token_embd", c_.n_vocab, c_.width, &embedding_);
  if (!c_.ple_layers.empty()) {
    const gguf::Tensor& table = weights_.tensor("per_layer_token_embd.weight");
    require_ngram_rows(c_, table);
    weights_.table("per_layer_token_embd", table.n_rows(), c_.ple_width, &ngrams_);
  }
  const std::string own = format("blk.{}.nextn.embed_tokens", c_.n_layers);
  if (draft && weights_.has(own + ".weight")) {
    weights_.table(own, c_.n_vocab, c_.width, &draft_embedding_);
  }
  weights_.declare_lines(plan);
  declare(stages.list.front(), residual_, "embedding rows", c_.wide(), plan);
  for (const int l : c_.ple_layers) {
    declare(stage_of(l), emb_, "n-gram rows", c_.width, plan);
  }
  if (draft) declare(stages.last(), draft_, "draft embedding rows", c_.width, plan);
}

void Qwen4ExpTables::declare(const Stage& to, Staging& staging, const char* name,
                             int64_t floats_a_row, memory::Plan& plan) {
  if (to.is_host() || staging.bytes > 0) return;
  staging.bytes = static_cast<Bytes>(options_.chunk * floats_a_row) * sizeof(float);
  staging.line = plan.add({.owner = "tables",
                           .name = name,
                           .formula = format("{} rows of {} f32", options_.chunk, floats_a_row),
                           .where = device::kHostId,
                           .bytes = staging.bytes});
}

void Qwen4ExpTables::allocate(const Stage& to, Staging& staging) {
  if (staging.bytes == 0) return;
  staging.memory = value_or_throw(to.device->allocate_staging(staging.line, staging.bytes));
}

const Stage& Qwen4ExpTables::stage_of(int layer) const {
  const auto it = std::ranges::find_if(
      stages_.list, [layer](const Stage& stage) { return layer < stage.end_layer; });
  STRATA_CHECK(it != stages_.list.end());
  return *it;
}

void Qwen4ExpTables::load(const std::function<void(Bytes, Bytes)>& progress) {
  weights_.place(progress);
  allocate(stages_.list.front(), residual_);
  // One layer's at a time, and a card's pinned memory serves all cards.
  if (!c_.ple_layers.empty()) allocate(stage_of(c_.ple_layers.front()), emb_);
  allocate(stages_.last(), draft_);
}

// The host computes at once, so the copy finds the rows. The memory between is written again in the
// next step, when the last stage has been waited for.
template <class Args>
void Qwen4ExpTables::bring(OpPass::Mode mode, const kernels::Op<Args>& op, Args args,
                           const Stage& to, const Staging& staging, int n_rows) {
  OpPass host(*stages_.host_stream, mode);
  if (mode == OpPass::Mode::kMeasure || to.is_host()) return host.run(op, args);
  const View<float> out = args.out;
  args.out = out.at(reinterpret_cast<float*>(staging.memory.data()));
  host.run(op, args);
  const auto row = static_cast<Bytes>(out.size() / out.extent(0)) * sizeof(float);
  const Bytes bytes = static_cast<Bytes>(n_rows) * row;
  if (bytes == 0) return;
  value_or_throw(to.stream->copy(to.at(out.data(), bytes), staging.memory.view().part(0, bytes)));
}

void Qwen4ExpTables::embed(OpPass::Mode mode, const StepInputs& inputs, View<float> residual) {
  bring(mode, kernels::ops_for(*stages_.host_stream).embed,
        kernels::Embed{.n_rows = inputs.host_n_rows(),
                       .id = View<const int32_t>(inputs.host_ids(), {residual.extent(0)}),
                       .table = embedding_,
                       .out = residual,
                       .copies = c_.streams},
        stages_.list.front(), residual_, inputs.n_rows());
}

kernels::Gather Qwen4ExpTables::gather_args(const StepInputs& inputs, View<float> emb) const {
  const View<const int64_t> index(inputs.host_ple_rows(), {emb.extent(0), c_.n_ple_rows()});
  return {.n_rows = inputs.host_n_rows(), .index = index, .table = ngrams_, .out = emb};
}

void Qwen4ExpTables::gather(OpPass::Mode mode, const StepInputs& inputs, int layer,
                            View<float> emb) {
  bring(mode, kernels::ops_for(*stages_.host_stream).gather, gather_args(inputs, emb),
        stage_of(layer), emb_, inputs.n_rows());
}

void Qwen4ExpTables::look_up(const StepInputs& inputs, int layer) {
  STRATA_CHECK(!stage_of(layer).is_host());
  OpPass host(*stages_.host_stream, OpPass::Mode::kRun);
  auto* const to = reinterpret_cast<float*>(emb_.memory.data());
  host.run(host.ops.gather, gather_args(inputs, View<float>(to, {options_.chunk, c_.width})));
}

void Qwen4ExpTables::bring_looked_up(int layer, View<float> emb) {
  const Stage& to = stage_of(layer);
  const Bytes bytes = static_cast<Bytes>(emb.size()) * sizeof(float);
  value_or_throw(to.stream->copy(to.at(emb.data(), bytes), emb_.memory.view().part(0, bytes)));
}

void Qwen4ExpTables::embed_draft(OpPass::Mode mode, const StepInputs& inputs, View<float> e) {
  bring(mode, kernels::ops_for(*stages_.host_stream).embed,
        kernels::Embed{.n_rows = inputs.host_n_rows(),
                       .id = View<const int32_t>(inputs.host_ids(), {e.extent(0)}),
                       .table = draft_embedding_ ? draft_embedding_ : embedding_,
                       .out = e,
                       .copies = 1},
        stages_.last(), draft_, inputs.n_rows());
}

}  // namespace strata::model
