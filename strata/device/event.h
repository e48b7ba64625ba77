#pragma once

#include "strata/base/clock.h"
#include "strata/device/wait_registry.h"

namespace strata::device {

class Device;

// A point in a stream's work: Stream::record puts it there, Stream::wait orders other work after
// it, device::wait waits for it on the host. Made by Device::make_event, which it must not outlive;
// queued work must not name it when it is destroyed. Recorded again before it is done: on the same
// stream only.
class Event {
 public:
  virtual ~Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  Device& device() const { return device_; }
  // True if what was recorded last is done, or nothing was recorded yet. Does not wait.
  virtual bool done() const = 0;

 protected:
  explicit Event(Device& device) : device_(device) {}

 private:
  friend bool wait(const Event&, const WaitFor&, Deadline);
  // True when done, false once `clock` is past `until` or if nothing can make it done.
  virtual bool wait_until(Clock::TimePoint until, const Clock& clock) const = 0;

  Device& device_;
};

// The only wait of the host, listed in the device's WaitRegistry while it lasts. False: late, and
// the work goes on.
// Errors: whatever the awaited work threw (sim; on host it was thrown as it was queued). The
//   launches and copies queued behind it on its stream are not done then, since they would compute
//   with what was never written; a stream that is drained takes new work. kDeviceLost.
bool wait(const Event& event, const WaitFor& what, Deadline deadline);

}  // namespace strata::device
