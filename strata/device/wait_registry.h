#pragma once

#include <array>
#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "strata/base/clock.h"
#include "strata/base/ids.h"

namespace strata::device {

// What a wait is for, in literals: who = "engine step", what = "logits of stage 0".
struct WaitFor {
  const char* who = "";
  const char* what = "";
};

// Every wait has an end.
struct Deadline {
  Clock::TimePoint at;
  static Deadline within(std::chrono::nanoseconds time, const Clock& clock = steady_clock()) {
    return {clock.now() + std::chrono::duration_cast<Clock::TimePoint::duration>(time)};
  }
};

struct WaitRow {
  WaitFor what;
  DeviceId device{};
  Clock::TimePoint since;
  Deadline deadline;
};

// The waits that are going on now, for the watchdog: it names the dependency that blocks, and
// tells a slow disk from a lost device. Any thread may call anything. Uses no heap but in rows().
class WaitRegistry {
 public:
  explicit WaitRegistry(const Clock& clock = steady_clock()) : clock_(clock) {}
  WaitRegistry(const WaitRegistry&) = delete;
  WaitRegistry& operator=(const WaitRegistry&) = delete;

  const Clock& clock() const { return clock_; }

  // No wait that begins from now on lasts longer than until then, whatever its own deadline: the
  // limit of the step that it is part of.
  void set_bound(Deadline bound);
  void clear_bound() { set_bound({Clock::TimePoint::max()}); }
  Deadline bounded(Deadline deadline) const;

  // The work that holds up who waits, where a device can tell: "copy of 4096 B at layer 3 on stream
  // compute of device 2". Empty: nobody knows.
  void set_blocked_by(std::string_view text);
  std::string blocked_by() const;
  // "within 5.0 s; held up by ..", for a wait since then.
  std::string late_text(Clock::TimePoint since) const;
  std::vector<WaitRow> rows() const;  // the oldest first

  // Lists a wait as long as it lives. Of more than kMaxWaits at once some are not listed.
  class Scope {
   public:
    Scope(WaitRegistry& registry, const WaitFor& what, DeviceId device, Deadline deadline);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    WaitRegistry& registry_;
    int slot_ = -1;
  };

 private:
  static constexpr int kMaxWaits = 64;
  struct Slot {
    bool used = false;
    WaitRow row;
  };

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::array<Slot, kMaxWaits> slots_;
  Deadline bound_{Clock::TimePoint::max()};
  std::array<char, 128> blocked_by_{};
};

}  // namespace strata::device
