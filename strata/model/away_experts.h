#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "strata/base/view.h"
#include "strata/device/device.h"
#include "strata/kernels/ops/moe.h"
#include "strata/memory/card_slots.h"
#include "strata/memory/expert_heat.h"
#include "strata/memory/expert_store.h"
#include "strata/memory/plan.h"
#include "strata/model/op_pass.h"
#include "strata/model/stage.h"

namespace strata::model {

// Computes on the host what a card's rows want of experts that the card does not hold, while the
// card computes the others, and brings the rows to their places. An expert's output does not depend
// on where it is computed, so neither do the bits of the sum. One engine thread.
class AwayExperts {
 public:
  struct Shape {
    int max_rows = 0, top_k = 0, width = 0, n_experts = 0;
  };
  // The stage's device is a card; both streams and devices outlive this.
  AwayExperts(const Stage& stage, const Stages& stages, const Shape& shape);

  // In a pass that measures: asks the ops of both for their scratch, for each shape of experts.
  void measure(OpPass& pass, const kernels::ExpertShape& shape);
  // Adds the lines; after measure.
  void declare(memory::Plan& plan);
  // Errors: kResourceExhausted.
  void allocate();

  // Queues what brings the choices and the rows of x to the host, behind what computes them.
  // id [max_rows, top_k], x [max_rows, width], in the card's memory. Errors: those of Stream::copy.
  void fetch(View<const int32_t> id, View<const float> x, int n_rows);
  // Waits for that, computes, and queues what writes the rows of out [max_rows, top_k, width].
  // shape: with factors in host memory. Errors: kDevice if the card takes longer than some minutes
  // for what comes before; those of ExpertStore::acquire, of ops and copies.
  void compute(LayerId layer, const kernels::ExpertShape& shape, memory::ExpertStore& store,
               memory::CardSlots& slots, memory::ExpertHeat& heat, View<float> out);

 private:
  // Rows on their way back; two, so that one is computed while the other is copied.
  struct Half {
    int32_t *id, *x_row, *index;  // on the host; index [1 + kPairs], its first is how many
    float* rows;                  // [kPairs, width]
    int32_t* card_index;          // the same on the card
    float* card_rows;
    std::unique_ptr<device::Event> copied;
  };
  int pairs() const;  // of one half
  Bytes carve_host(std::byte* base);
  Bytes carve_card(std::byte* base);
  // Sorts the step's pairs by expert; leaves the distinct ones that are not in slots.
  void group(LayerId layer, const memory::CardSlots& slots);
  void compute_some(const kernels::ExpertShape& shape, const memory::ExpertLease& lease,
                    View<float> out);
  void send(const Half& half, int n, View<float> out);

  Stage stage_;
  device::Stream& host_;
  Shape shape_;
  Bytes scratch_bytes_ = 0;
  PlanLineId host_line_, scratch_line_, card_line_;
  device::Allocation host_memory_, scratch_, card_memory_;
  int32_t* id_ = nullptr;  // [max_rows, top_k]
  float* x_ = nullptr;     // [max_rows, width]
  Half halves_[2];
  int next_half_ = 0;
  std::unique_ptr<device::Event> fetched_;
  int n_rows_ = 0;
  std::vector<int32_t> first_, pair_;  // of each expert among the pairs; row * top_k + choice
  std::vector<ExpertId> wanted_, rest_;
};

}  // namespace strata::model
