#include "strata/model/plan_source.h"

#include "strata/device/host/host_device.h"
#include "strata/device/sim/sim_device.h"

namespace strata::model {

ModelPlanSource::ModelPlanSource(const Blueprint& blueprint, const ModelOptions& options,
                                 const memory::Machine& machine)
    : blueprint_(blueprint), facts_(blueprint.facts()), options_(options) {
  options_.experts_apart = true;
  devices_.push_back(device::make_host_device({}));
  const std::shared_ptr<device::SimOrder> order = device::make_sim_order(1);
  for (const memory::Card& card : machine.cards) {
    const DeviceId id(static_cast<int32_t>(devices_.size()));
    devices_.push_back(device::make_sim_device(
        id, {.capacity = card.total, .graph_node_bytes = card.graph_node_bytes}, order, {}));
  }
  for (const auto& each : devices_) streams_.push_back(each->make_stream("layout"));
}

ModelPlanSource::~ModelPlanSource() = default;

void ModelPlanSource::declare(const memory::Placement& placement, memory::Plan& plan) const {
  ModelOptions options = options_;
  options.chunk = placement.chunk;
  options.max_context = placement.max_context;
  options.draft = placement.drafts();
  Stages stages{.host = devices_.front().get(), .host_stream = streams_.front().get()};
  for (const memory::Stage& stage : placement.stages) {
    const auto i = static_cast<size_t>(stage.where.value);
    stages.list.push_back({.device = devices_[i].get(),
                           .stream = streams_[i].get(),
                           .first_layer = stage.first_layer,
                           .end_layer = stage.end_layer});
  }
  blueprint_.open(options, stages, plan);
}

}  // namespace strata::model
