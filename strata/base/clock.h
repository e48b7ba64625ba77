#pragma once

#include <atomic>
#include <chrono>

namespace strata {

// Monotonic time, given to whatever has deadlines, so that tests can turn the hands themselves.
// Any thread may call now().
class Clock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

class SteadyClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
};

// Has no state, so one serves everybody.
inline const Clock& steady_clock() {
  static const SteadyClock clock;
  return clock;
}

// Stands still until told otherwise. Starts one hour after the epoch, so that a test may look back.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override {
    return TimePoint(std::chrono::duration_cast<TimePoint::duration>(
        std::chrono::nanoseconds(now_ns_.load(std::memory_order_relaxed))));
  }
  void advance(std::chrono::nanoseconds by) {
    now_ns_.fetch_add(by.count(), std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t> now_ns_{std::chrono::nanoseconds(std::chrono::hours(1)).count()};
};

}  // namespace strata
