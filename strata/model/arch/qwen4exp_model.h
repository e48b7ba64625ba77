#pragma once

#include <memory>
#include <span>
#include <vector>

#include "strata/memory/expert_store.h"
#include "strata/model/arch/qwen4exp_buffers.h"
#include "strata/model/arch/qwen4exp_config.h"
#include "strata/model/arch/qwen4exp_weights.h"
#include "strata/model/model.h"
#include "strata/model/ngram.h"
#include "strata/model/op_pass.h"
#include "strata/model/rope.h"

namespace strata::model {

// The layout of a model (qwen4exp.cpp) and its computation, op by op (qwen4exp_forward.cpp).
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
  StateSpec state_spec(bool draft) const;
  Bytes measure_scratch();

  void trunk(OpPass& pass);
  void trunk_head(OpPass& pass, const HcSite& site, const kernels::Weight& output);
  void draft_pass(OpPass& pass);
  void commit_pass(OpPass& pass);
  void layer(OpPass& pass, int l, const LayerState& state);
  void ple(OpPass& pass, const Qwen4ExpLayer& w, const LayerState& state);
  void delta_net(OpPass& pass, const Qwen4ExpLayer& w, const LayerState& state);
  void attention(OpPass& pass, int l, const Qwen4ExpLayer& w, const LayerState& state);
  void experts(OpPass& pass, int l, const Qwen4ExpLayer& w);
  void hc_read(OpPass& pass, const HcSite& site, View<float> residual, const int32_t* n_rows,
               View<float> u);
  void hc_write(OpPass& pass);
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

}  // namespace strata::model
