#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "strata/device/fault.h"

namespace strata::device {

class Device;

// What a fault rule counts.
enum class FaultPoint : uint8_t {
  kAllocate,  // Device::allocate, after the gate: a Fault
  kCopy,      // Stream::copy as it is asked for: a Fault
  kLaunch,    // Stream::run as it is asked for: throws. Replays do not count, they have no answer
  kRun,       // a launch or copy, eager or of a graph, as its turn comes: it is not done, and
              // whoever waits gets an exception
  kHang,      // as kRun, but it never ends and nothing behind it runs
};

// Calls nth .. nth + times - 1 of a kind fail, counted from 1 since the rule was set. With
// kDeviceLost the card is gone: nothing queued is ever run, and every later call fails the same
// way.
struct FaultRule {
  FaultPoint point = FaultPoint::kRun;
  uint64_t nth = 1;
  ErrorCode code = ErrorCode::kDevice;
  uint64_t times = 1;
};

// "launch#500:device_lost", "copy#3x2:io", "run#7": point#nth[xTIMES][:code]. Points are allocate,
// copy, launch, run and hang, codes those of strata::name; without one it is the device's.
// Errors: kInvalidArgument.
FaultRule parse_fault_rule(std::string_view text);

// The rules of one sim. Used by whoever uses the sim, one thread at a time.
class SimFaults {
 public:
  explicit SimFaults(DeviceId device) : device_(device) {}

  void add(const FaultRule& rule);
  // Forgets the rules; work that hangs goes on. A lost card stays lost.
  void clear();
  void resume() { hangs_ = false; }

  // How often a point was passed since the device was made.
  uint64_t n_passed(FaultPoint point) const { return passed_[static_cast<size_t>(point)]; }
  bool lost() const { return lost_; }
  bool hangs() const { return hangs_; }

  // For the sim: counts a call, and says whether it fails.
  std::optional<Fault> pass(FaultPoint point);

 private:
  struct Active {
    FaultRule rule;
    uint64_t first;  // in terms of passed_
  };

  DeviceId device_;
  std::array<uint64_t, 5> passed_{};
  std::vector<Active> rules_;
  bool lost_ = false, hangs_ = false;
};

// Of a device of Kind::kSim.
SimFaults& faults_of(Device& sim);

}  // namespace strata::device
