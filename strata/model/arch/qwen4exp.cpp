#include "strata/model/arch/qwen4exp.h"

#include <algorithm>
#include <utility>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/model/arch/qwen4exp_model.h"

namespace strata::model {
namespace {

RopeSettings rope_settings(const Qwen4ExpConfig& c) {
  return {.dims = c.rope_dims,
          .base = c.rope_base,
          .sections = c.rope_sections,
          .yarn_factor = c.context.yarn_factor,
          .yarn_context = c.context.yarn_context};
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

void require_stages(const Stages& stages, int n_layers) {
  int next = 0;
  for (const Stage& stage : stages.list) {
    STRATA_CHECK(stage.first_layer == next && stage.end_layer > next);
    next = stage.end_layer;
  }
  STRATA_CHECK(next == n_layers);
}

}  // namespace

Qwen4Exp::Qwen4Exp(const gguf::Model& file, Qwen4ExpConfig config, const ModelOptions& options,
                   const Stages& stages, memory::Plan& plan)
    : c_(std::move(config)),
      options_(options),
      shared_{.config = c_,
              .options = options_,
              .draft = options.draft && c_.n_draft_layers > 0,
              .stages = stages},
      ratio_(common_ratio(c_)),
      rope_(rope_settings(c_)),
      ngram_{.order = c_.ple_ngram,
             .heads = c_.ple_heads,
             .eos = c_.ple_eos,
             .multipliers = c_.ple_multipliers,
             .offsets = c_.ple_offsets,
             .sizes = c_.ple_sizes},
      tables_(file, c_, options_, shared_.draft, shared_.stages, plan),
      experts_(file, c_, options_, shared_.draft, shared_.stages, plan) {
  require_stages(stages, c_.n_layers);
  lay_out(file, plan);
  make_info(file);
}

void Qwen4Exp::lay_out(const gguf::Model& file, memory::Plan& plan) {
  const std::vector<Stage>& list = shared_.stages.list;
  std::vector<StatePart> parts;
  for (size_t i = 0; i < list.size(); ++i) {
    stages_.push_back(std::make_unique<Qwen4ExpStage>(file, shared_, i, experts_, plan));
    parts.push_back(stages_.back()->state_part());
  }
  states_ = std::make_unique<StatePools>(state_spec(false), parts, plan);
  if (shared_.draft) {
    StatePart part = parts.back();
    part.first_layer = 0;
    part.end_layer = c_.n_draft_layers;
    draft_states_ =
        std::make_unique<StatePools>(state_spec(true), std::vector<StatePart>{part}, plan);
  }
  inputs_ = std::make_unique<StepInputs>(
      StepShape{.max_rows = options_.chunk,
                .max_seqs = options_.slots,
                .max_out = options_.max_out,
                .slots = options_.slots,
                .pages_per_slot = states_->spec().pages_per_slot(),
                .streams = c_.streams,
                .pairs = c_.rope_pairs(),
                .ple_rows = c_.ple_layers.empty() ? 0 : c_.n_ple_rows()},
      list, plan);
  for (const auto& stage : stages_) {
    stage->lay_out(tables_, *states_, draft_states_.get(), *inputs_, plan);
  }
  const Bytes residual = static_cast<Bytes>(int64_t{options_.chunk} * c_.wide()) * sizeof(float);
  for (size_t i = 0; i + 1 < list.size(); ++i) {
    handoffs_.emplace_back(list[i], list[i + 1], residual, plan);
  }
}

void Qwen4Exp::make_info(const gguf::Model& file) {
  info_ = {.architecture = "qwen4exp",
           .name = c_.name,
           .n_layers = c_.n_layers,
           .n_vocab = c_.n_vocab,
           .width = c_.width,
           .streams = c_.streams,
           .trained_context = c_.context.trained,
           .yarn_factor = c_.context.yarn_factor,
           .yarn_context = c_.context.yarn_context,
           .n_experts = c_.n_experts,
           .top_k = c_.top_k,
           .has_draft = shared_.draft,
           .weights = tables_.weights().bytes(),
           .bytes_per_token = bytes_per_token(c_, file)};
  info_.weights += experts_.weights().bytes();
  for (const auto& stage : stages_) info_.weights += stage->weights().bytes();
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

void Qwen4Exp::load(const std::function<void(Bytes, Bytes)>& progress) {
  const Bytes total = info_.weights.copied() + experts_.bytes_of_pool();
  Bytes before = 0;
  const auto of_all = [&](Bytes done, Bytes) {
    if (progress) progress(before + done, total);
  };
  tables_.load(of_all);
  before += tables_.weights().bytes().copied();
  experts_.load(of_all);
  before += experts_.weights().bytes().copied() + experts_.bytes_of_pool();
  for (const auto& stage : stages_) {
    stage->load(of_all);
    before += stage->weights().bytes().copied();
  }
  states_->allocate();
  if (draft_states_) draft_states_->allocate();
  inputs_->allocate();
  for (Handoff& handoff : handoffs_) handoff.allocate();
  for (size_t i = 0; i + 1 < stages_.size(); ++i) {
    ended_.push_back(stages_[i]->at().device->make_event());
  }
  for (const auto& stage : stages_) stage->record();
}

void Qwen4Exp::forward() {
  experts_.between_steps(inputs_->n_rows());
  const auto bytes = static_cast<Bytes>(int64_t{inputs_->n_rows()} * c_.wide()) * sizeof(float);
  for (size_t i = 0; i < stages_.size(); ++i) {
    if (i > 0) {
      void* const to = stages_[i]->residual().data();
      const void* const from = stages_[i - 1]->residual().data();
      if (shared_.cautious) {
        handoffs_[i - 1].send_through_host(to, from, bytes);
      } else {
        handoffs_[i - 1].send(to, from, bytes);
      }
    }
    stages_[i]->forward(observer_);
  }
}

std::optional<memory::ExpertProfile> Qwen4Exp::learned() const {
  if (!experts_.heat().learned()) return std::nullopt;
  return experts_.heat().profile();
}

void Qwen4Exp::commit() {
  for (const auto& stage : stages_) stage->commit();
  // Who waits for the last stage has waited for all.
  for (size_t i = 0; i < ended_.size(); ++i) {
    stages_[i]->at().stream->record(*ended_[i]);
    shared_.stages.last().stream->wait(*ended_[i]);
  }
}

namespace {

ModelFacts facts_of(const gguf::Model& file, const Qwen4ExpConfig& c) {
  ModelFacts facts{.architecture = "qwen4exp",
                   .name = c.name,
                   .n_layers = c.n_layers,
                   .n_experts = c.n_experts,
                   .top_k = c.top_k,
                   .layers = layer_bytes(c, file),
                   .head_bytes = head_bytes(file),
                   .trained_context = c.context.trained,
                   .scaled_context = c.context.scaled(),
                   .has_draft = c.n_draft_layers > 0,
                   .draft_norm_per_stream = c.draft_norm_per_stream};
  for (int l = 0; l < c.n_layers; ++l) {
    const gguf::Tensor* k = file.find(format("blk.{}.attn_k.weight", l));
    if (k) facts.f32_attention = k->type->type == quant::Type::kF32;
  }
  return facts;
}

class Qwen4ExpBlueprint final : public Blueprint {
 public:
  explicit Qwen4ExpBlueprint(const gguf::Model& file)
      : file_(file), config_(read_qwen4exp_config(file)), facts_(facts_of(file, config_)) {}

  const ModelFacts& facts() const override { return facts_; }

  std::unique_ptr<Model> open(const ModelOptions& options, const Stages& stages,
                              memory::Plan& plan) const override {
    require_sizes(options);
    Qwen4ExpConfig config = config_;
    config.context = resolve_context(options, config.context, config.name);
    if (options.draft_norm_per_stream) {
      config.draft_norm_per_stream = *options.draft_norm_per_stream;
    }
    return std::make_unique<Qwen4Exp>(file_, std::move(config), options, stages, plan);
  }

 private:
  const gguf::Model& file_;
  Qwen4ExpConfig config_;
  ModelFacts facts_;
};

}  // namespace

std::unique_ptr<Blueprint> read_qwen4exp(const gguf::Model& file) {
  return std::make_unique<Qwen4ExpBlueprint>(file);
}

}  // namespace strata::model
