#pragma once

#include <memory>
#include <span>
#include <vector>

#include "strata/device/event.h"
#include "strata/model/arch/qwen4exp_config.h"
#include "strata/model/arch/qwen4exp_experts.h"
#include "strata/model/arch/qwen4exp_stage.h"
#include "strata/model/arch/qwen4exp_tables.h"
#include "strata/model/handoff.h"
#include "strata/model/model.h"
#include "strata/model/ngram.h"
#include "strata/model/rope.h"

namespace strata::model {

// A model over its stages: qwen4exp.cpp lays it out, Qwen4ExpStage computes.
class Qwen4Exp final : public Model {
 public:
  Qwen4Exp(const gguf::Model& file, Qwen4ExpConfig config, const ModelOptions& options,
           const Stages& stages, memory::Plan& plan);

  const ModelInfo& info() const override { return info_; }
  HostCopy& copies() override { return stages_.back()->copies(); }
  void load(const std::function<void(Bytes, Bytes)>& progress) override;

  void forward() override;
  void head() override { stages_.back()->head(); }
  void draft() override { stages_.back()->draft(observer_); }
  void draft_head() override { stages_.back()->draft_head(); }
  void commit() override;
  void set_cautious(bool cautious) override { shared_.cautious = cautious; }
  memory::SlotCounters slot_counters() const override { return experts_.slot_counters(); }
  memory::PoolCounters pool_counters() const override { return experts_.pool_counters(); }
  std::optional<memory::ExpertProfile> learned() const override;

  View<float> residual() override { return stages_.back()->residual(); }
  View<float> logits() override { return stages_.back()->logits(); }

 protected:
  void ngram_rows(std::span<const int32_t> ids, size_t first,
                  std::vector<int64_t>& out) const override {
    ngram_.append_rows(ids, first, out);
  }
  const Rope& rope() const override { return rope_; }
  int index_ratio() const override { return ratio_; }

 private:
  StateSpec state_spec(bool draft) const;
  void lay_out(const gguf::Model& file, memory::Plan& plan);
  void make_info(const gguf::Model& file);

  Qwen4ExpConfig c_;
  ModelOptions options_;
  Qwen4ExpStage::Shared shared_;
  int ratio_ = 0;
  Rope rope_;
  NgramHash ngram_;
  ModelInfo info_;
  Qwen4ExpTables tables_;
  Qwen4ExpExperts experts_;
  std::vector<std::unique_ptr<Qwen4ExpStage>> stages_;
  std::vector<Handoff> handoffs_;                      // i: from stage i to stage i + 1
  std::vector<std::unique_ptr<device::Event>> ended_;  // of all stages but the last: a commit
};

}  // namespace strata::model
