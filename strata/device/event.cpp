#include "strata/device/event.h"

#include "strata/device/device.h"

namespace strata::device {

bool wait(const Event& event, const WaitFor& what, Deadline deadline) {
  if (event.done()) return true;
  WaitRegistry& waits = event.device().waits();
  deadline = waits.bounded(deadline);
  const WaitRegistry::Scope listed(waits, what, event.device().id(), deadline);
  return event.wait_until(deadline.at, waits.clock());
}

}  // namespace strata::device
