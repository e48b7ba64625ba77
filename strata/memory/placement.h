#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strata/base/ids.h"
#include "strata/memory/plan.h"

namespace strata::memory {

// Layers that one device computes.
struct Stage {
  DeviceId where;  // 0: the host
  int first_layer = 0, end_layer = 0;
  int n_layers() const { return end_layer - first_layer; }
};

// What is computed where, and in which portions.
struct Placement {
  std::vector<Stage> stages;  // in order and without gaps; at least one
  DeviceId head;              // final norm and output matrix
  DeviceId draft;             // the draft layer; -1: none
  int chunk = 0;              // rows of a step
  int64_t max_context = 0;    // tokens a slot can hold

  bool drafts() const { return draft.value >= 0; }
};

// A model as the planner sees it: sizes that its file's header tells, never weights.
class PlanSource {
 public:
  virtual ~PlanSource() = default;

  virtual int n_layers() const = 0;    // of the trunk
  virtual bool has_draft() const = 0;  // one layer more, with the number n_layers()
  virtual int n_experts() const = 0;
  virtual int top_k() const = 0;
  // One expert of a layer, gate | up | down.
  virtual Bytes blob_bytes(int layer) const = 0;
  // What a token reads of a layer besides routed experts, and of final norm and output matrix.
  virtual Bytes dense_bytes(int layer) const = 0;
  virtual Bytes head_bytes() const = 0;

  // Adds every line but those of experts: dense weights, state, activations, staging.
  virtual void declare(const Placement& placement, Plan& plan) const = 0;
};

// What an option came to be, and why.
struct Decision {
  std::string name, value, why;
  bool warning = false;  // less than what was hoped for
};

}  // namespace strata::memory
