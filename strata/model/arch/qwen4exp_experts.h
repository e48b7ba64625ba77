#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "strata/kernels/ops/moe.h"
#include "strata/memory/card_slots.h"
#include "strata/memory/expert_heat.h"
#include "strata/memory/expert_store.h"
#include "strata/memory/ram_pool.h"
#include "strata/model/arch/qwen4exp_config.h"
#include "strata/model/options.h"
#include "strata/model/stage.h"
#include "strata/model/weights.h"

namespace strata::model {

// Where the routed experts of a model lie: whole with their layer, or in the tiers that all stages
// share. One engine thread.
class Qwen4ExpExperts {
 public:
  // Asks for the tensors that the tiers need and adds the lines. config, options and stages outlive
  // this.
  Qwen4ExpExperts(const gguf::Model& file, const Qwen4ExpConfig& config,
                  const ModelOptions& options, bool draft, const Stages& stages,
                  memory::Plan& plan);

  // Whether the device that computes the layer has all its experts, as weights of the stage.
  bool whole(int layer) const { return whole_[static_cast<size_t>(layer)]; }
  const std::vector<bool>& whole() const { return whole_; }

  const Weights& weights() const { return weights_; }  // what is in RAM, and factors
  memory::ExpertStore& store() { return store_; }
  memory::ExpertHeat& heat() { return heat_; }
  const memory::ExpertHeat& heat() const { return heat_; }
  // Of a stage on a card some of whose layers are not whole; else null.
  memory::CardSlots* slots(size_t stage) { return slots_[stage].get(); }
  memory::SlotCounters slot_counters() const;  // of all cards
  memory::PoolCounters pool_counters() const;
  bool pooled() const { return pool_ != nullptr; }
  // Of a layer that is not whole: with factors in host memory.
  const kernels::ExpertShape& host_shape(int layer) const {
    return layers_[static_cast<size_t>(layer)].shape;
  }

  void load(const std::function<void(Bytes, Bytes)>& progress);
  // Bytes that load() reads before the first step, beside the weights.
  Bytes bytes_of_pool() const { return pool_ ? pool_->slot_bytes() : 0; }
  // Before a step of n rows, when all work of the last one is done: moves experts for it.
  void between_steps(int n_rows);

 private:
  struct Layer {
    kernels::ExpertShape shape;
    std::vector<memory::ExpertStore::Parts> parts;
    memory::BlobFiles files;
  };
  bool lies_whole(int layer, const Stage& stage) const;
  void add_pool(memory::Plan& plan);
  void add_slots(memory::Plan& plan);
  bool on_card(memory::ExpertPlace place) const;

  const gguf::Model& file_;
  const Qwen4ExpConfig& c_;
  const ModelOptions& options_;
  const Stages& stages_;
  int n_layers_;  // of trunk, and of the draft if it is loaded
  std::vector<bool> whole_;
  Weights weights_;
  std::vector<Layer> layers_;
  memory::ExpertHeat heat_;
  memory::ExpertStore store_;
  std::unique_ptr<memory::RamPool> pool_;  // null: what is not whole lies in RAM for good
  std::vector<std::unique_ptr<memory::CardSlots>> slots_;  // of each stage
};

}  // namespace strata::model
