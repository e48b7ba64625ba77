#pragma once

#include <memory>

#include "strata/base/view.h"
#include "strata/device/event.h"
#include "strata/memory/plan.h"
#include "strata/model/stage.h"

namespace strata::model {

// Brings the residual from one stage to the next: through pinned memory of the host, so that cards
// need not know each other, and a card never touches pageable memory.
class Handoff {
 public:
  // Adds the line of the memory between, for `bytes` at most. The stages' devices outlive this.
  Handoff(const Stage& from, const Stage& to, Bytes bytes, memory::Plan& plan);
  // Errors: kResourceExhausted.
  void allocate();

  // Queues both copies. What the receiving stage queues afterwards finds the bytes; the sending
  // one may go on with its next step when the receiving stream has been waited for.
  // Errors: those of Stream::copy.
  void send(void* to, const void* from, Bytes bytes);

 private:
  Stage from_, to_;
  Bytes bytes_;
  PlanLineId line_;
  device::Allocation between_;
  std::unique_ptr<device::Event> sent_;
};

}  // namespace strata::model
