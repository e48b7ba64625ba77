#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "strata/model/arch/qwen4exp_buffers.h"
#include "strata/model/arch/qwen4exp_config.h"
#include "strata/model/arch/qwen4exp_experts.h"
#include "strata/model/arch/qwen4exp_tables.h"
#include "strata/model/arch/qwen4exp_weights.h"
#include "strata/model/away_experts.h"
#include "strata/model/host_copy.h"
#include "strata/model/model.h"
#include "strata/model/op_pass.h"
#include "strata/model/stage.h"

namespace strata::model {

// What one device has of a model, and its computation op by op. Life as that of the Model: made,
// then laid out with the parts that all stages share, then loaded.
class Qwen4ExpStage {
 public:
  // Steps of running answers are seen as so many rows: one answer, several or their drafts, and
  // many of them. More are a prompt's.
  static constexpr std::array<int, 3> kFewRows = {1, 8, 32};

  // What the stages of a model share; outlives them.
  struct Shared {
    const Qwen4ExpConfig& config;
    const ModelOptions& options;
    bool draft = false;  // the draft layer is loaded
    Stages stages;
    bool cautious = false;  // see Model::set_cautious
  };
  // Asks for the weights and adds their lines. experts outlives this.
  Qwen4ExpStage(const gguf::Model& file, const Shared& shared, size_t index,
                Qwen4ExpExperts& experts, memory::Plan& plan);

  const Stage& at() const { return shared_.stages.list[index_]; }
  bool is_last() const { return index_ + 1 == shared_.stages.list.size(); }
  const Weights& weights() const { return weights_; }
  HostCopy& copies() { return copies_; }
  StatePart state_part() {
    return {at().device, at().stream, &copies_, at().first_layer, at().end_layer};
  }

  // Measures the scratch that the ops want and adds the line of the activations. All of these
  // outlive the stage; draft_states is null without a draft layer.
  void lay_out(Qwen4ExpTables& tables, const StatePools& states, const StatePools* draft_states,
               const StepInputs& inputs, memory::Plan& plan);
  void load(const std::function<void(Bytes, Bytes)>& progress);
  // When all memory is there: records the layers of the steps that come first, for a device that
  // gains by it; others are recorded when they come. What cannot be recorded is queued op by op,
  // with the same bits (device::Feature::kGraphs).
  void record();

  // The stage's layers on residual(), which the first one fills itself.
  void forward(LayerObserver* observer);
  // Of the last stage.
  void head();
  void draft(LayerObserver* observer);
  void draft_head();
  // The stage's part of Model::commit.
  void commit();

  View<float> residual() const { return all_.residual; }
  View<float> logits() const { return b_.logits; }

 private:
  OpPass run() const { return OpPass(*at().stream, OpPass::Mode::kRun, b_.scratch); }
  Bytes carve(Bytes scratch_bytes, std::byte* base);
  Bytes measure_scratch();
  const Qwen4ExpLayer& weights_of(int layer) const;
  int index_of(int layer) const;  // among the stage's own, the draft layer behind them
  Bytes address_bytes() const;
  void load_addresses();
  // Where a card finds the experts of a layer that lies on it.
  View<const std::byte* const> addresses(int layer) const;
  const kernels::Rows& rows() const { return rows_; }
  // Sees the step's arrays as the fewest rows of a class that hold it.
  void choose_rows();
  void use_rows(int n);
  bool has_graphs() const;
  device::Graph record(int n_rows);
  bool record_class(size_t i);
  void trip_graphs(const std::string& what, const Error& why);
  bool replayed();

  bool has_ngrams() const;
  void layers(OpPass& pass);
  void final_head(OpPass& pass, const HcSite& site, const kernels::Weight& output);
  void draft_layer(OpPass& pass);
  void commit_states(OpPass& pass);
  void layer(OpPass& pass, int l, const LayerState& state);
  void ple(OpPass& pass, int l, const Qwen4ExpLayer& w, const LayerState& state);
  void delta_net(OpPass& pass, const Qwen4ExpLayer& w, const LayerState& state);
  void attention(OpPass& pass, int l, const Qwen4ExpLayer& w, const LayerState& state);
  void experts(OpPass& pass, int l, const Qwen4ExpLayer& w);
  void pooled_experts(OpPass& pass, int l, kernels::ExpertFfn ffn);
  void look_ahead(OpPass& pass, int l);
  void hc_read(OpPass& pass, const HcSite& site, View<float> residual, const int32_t* n_rows,
               View<float> u);
  void hc_write(OpPass& pass);
  void observe(int l, bool selected);

  const Shared& shared_;
  const Qwen4ExpConfig& c_;
  const ModelOptions& options_;
  size_t index_;
  Weights weights_;
  Qwen4ExpWeights w_;
  HostCopy copies_;
  Qwen4ExpExperts& experts_;
  // Of the host, where experts are read from storage as they are wanted.
  std::vector<ExpertId> wanted_, rest_;
  std::vector<int32_t> ahead_id_;
  std::vector<float> ahead_weight_;
  std::optional<AwayExperts> away_;  // of a card that does not hold all its experts
  Qwen4ExpTables* tables_ = nullptr;
  const StatePools *states_ = nullptr, *draft_states_ = nullptr;
  const StepInputs* inputs_ = nullptr;
  LayerObserver* observer_ = nullptr;  // of the pass that runs
  PlanLineId buffer_line_, address_line_;
  device::Allocation buffer_memory_, addresses_;
  Qwen4ExpBuffers all_, b_;  // b_: what this step sees of it
  kernels::Rows rows_;
  PlanLineId graph_line_;
  size_t n_graph_nodes_ = 0;                           // of the largest graph
  std::array<device::Graph, kFewRows.size()> graphs_;  // of the layers, for so many rows
  bool capturing_ = false;
};

}  // namespace strata::model
