#pragma once

#include <memory>

#include "strata/base/view.h"
#include "strata/device/event.h"
#include "strata/memory/plan.h"
#include "strata/model/stage.h"

namespace strata::model {

// Brings the residual from one stage to the next: directly where the receiving card reaches the
// sending one and that has not failed (Feature::kPeerCopies), else through staging memory of the
// host, so that cards need not know each other. The bytes are the same.
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
  // Through the host, whatever the cards can do.
  void send_through_host(void* to, const void* from, Bytes bytes);

 private:
  bool goes_directly() const;

  Stage from_, to_;
  Bytes bytes_;
  PlanLineId line_;
  device::Allocation between_;
  std::unique_ptr<device::Event> sent_;
};

}  // namespace strata::model
