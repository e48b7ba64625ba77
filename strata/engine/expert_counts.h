#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strata/memory/expert_profile.h"
#include "strata/model/instance.h"

namespace strata::engine {

// Counts which experts texts make a model choose. Uses the instance's model directly; the engine of
// that instance must not run at the same time, and nobody else observes the model.
class ExpertCounts final : private model::LayerObserver {
 public:
  // The instance is loaded. Its draft layer is counted as well, if it has one.
  explicit ExpertCounts(model::Instance& instance);
  ~ExpertCounts() override;
  ExpertCounts(const ExpertCounts&) = delete;
  ExpertCounts& operator=(const ExpertCounts&) = delete;

  // Reads the ids in a fresh session, in chunks of the instance's size.
  // Errors: kInvalidArgument if they do not fit into the context; those of Instance::wait.
  void add(std::span<const int32_t> ids);

  // Of all that was added; [layers, experts], the draft layer last.
  memory::ExpertProfile profile() const;

 private:
  void residual(int, View<const float>) override {}
  void experts(int layer, View<const int32_t> id, View<const float>) override;
  void selection(int, int, View<const int32_t>, View<const int32_t>) override {}

  model::Instance& instance_;
  int n_layers_ = 0, n_experts_ = 0;
  std::vector<int64_t> counts_;  // [layers, experts]
};

}  // namespace strata::engine
