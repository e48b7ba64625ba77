#pragma once

#include <memory>
#include <vector>

#include "strata/device/device.h"
#include "strata/gguf/model.h"
#include "strata/memory/machine.h"
#include "strata/memory/placement.h"
#include "strata/model/model.h"

namespace strata::model {

// A model as the planner sees it. To price a placement it is laid out with the code that a run
// uses, on devices that have the machine's sizes and no memory: nothing is allocated or read.
class ModelPlanSource final : public memory::PlanSource {
 public:
  // options: what placements do not say (slots, cells, window, packing, scaling). file and
  // blueprint outlive this. Errors: none here; declare throws those of Blueprint::open.
  ModelPlanSource(const Blueprint& blueprint, const ModelOptions& options,
                  const memory::Machine& machine);
  ~ModelPlanSource() override;

  int n_layers() const override { return facts_.n_layers; }
  bool has_draft() const override { return facts_.has_draft; }
  int n_experts() const override { return facts_.n_experts; }
  int top_k() const override { return facts_.top_k; }
  Bytes blob_bytes(int layer) const override {
    return facts_.layers[static_cast<size_t>(layer)].blob_bytes;
  }
  Bytes dense_bytes(int layer) const override {
    return facts_.layers[static_cast<size_t>(layer)].dense_bytes;
  }
  Bytes head_bytes() const override { return facts_.head_bytes; }
  void declare(const memory::Placement& placement, memory::Plan& plan) const override;

 private:
  const Blueprint& blueprint_;
  const ModelFacts& facts_;
  ModelOptions options_;
  std::vector<std::unique_ptr<device::Device>> devices_;
  std::vector<std::unique_ptr<device::Stream>> streams_;  // of each device
};

}  // namespace strata::model
