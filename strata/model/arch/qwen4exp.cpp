#include "strata/model/arch/qwen4exp.h"

#include <algorithm>
#include <utility>

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

}  // namespace

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
           .trained_context = c_.context.trained,
           .yarn_factor = c_.context.yarn_factor,
           .yarn_context = c_.context.yarn_context,
           .n_experts = c_.n_experts,
           .top_k = c_.top_k,
           .has_draft = draft_,
           .weights = weights_.bytes(),
           .bytes_per_token = bytes_per_token(c_, file)};
  weights_.declare_lines(plan);
  copies_ = std::make_unique<HostCopy>(device, plan);
  states_ = std::make_unique<StatePools>(state_spec(false), device, plan, *copies_);
  if (draft_)
    draft_states_ = std::make_unique<StatePools>(state_spec(true), device, plan, *copies_);
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
                .where = device.id(),
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
  OpPass pass(*stream, OpPass::Mode::kMeasure);
  trunk(pass);
  trunk_head(pass, w_.final_site, w_.output);
  commit_pass(pass);
  if (draft_) draft_pass(pass);
  return pass.peak();
}

void Qwen4Exp::load(const std::function<void(Bytes, Bytes)>& progress) {
  weights_.place(progress);
  for (size_t l = 0; l < w_.layers.size(); ++l) {
    store_.add_layer(LayerId(static_cast<int32_t>(l)), w_.layers[l].parts);
  }
  copies_->allocate();
  states_->allocate();
  if (draft_states_) draft_states_->allocate();
  inputs_->allocate();
  const Bytes scratch = static_cast<Bytes>(b_.scratch.extent(0));
  const Bytes bytes = b_.carve(c_, options_.chunk, options_.max_out, draft_, scratch, nullptr);
  buffer_memory_ = value_or_throw(device_.allocate(buffer_line_, bytes, device_.work_memory()));
  b_.carve(c_, options_.chunk, options_.max_out, draft_, scratch, buffer_memory_.data());
}

namespace {

ModelFacts facts_of(const gguf::Model& file, const Qwen4ExpConfig& c) {
  ModelFacts facts{.architecture = "qwen4exp",
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

  std::unique_ptr<Model> open(const ModelOptions& options, device::Device& device,
                              memory::Plan& plan) const override {
    require_sizes(options);
    Qwen4ExpConfig config = config_;
    config.context = resolve_context(options, config.context, config.name);
    if (options.draft_norm_per_stream) {
      config.draft_norm_per_stream = *options.draft_norm_per_stream;
    }
    return std::make_unique<Qwen4Exp>(file_, std::move(config), options, device, plan);
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
