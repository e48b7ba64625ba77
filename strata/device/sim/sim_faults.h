#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strata/device/fault.h"

namespace strata::device {

class Device;

// Where a rule looks.
enum class FaultPoint : uint8_t {
  kAllocate,     // Device::allocate, after the gate
  kPin,          // of these, those of pinned memory
  kCapture,      // Stream::begin_capture
  kInstantiate,  // Stream::end_capture, when the nodes are known and before memory is taken
  kCopy,         // Stream::copy as it is asked for, those that are recorded included
  kLaunch,       // Stream::run likewise
  kReplay,       // Stream::replay
  kRun,          // a launch or copy, eager or of a graph, as its turn comes
};
inline constexpr size_t kFaultPoints = 8;

enum class FaultAction : uint8_t {
  kFail,    // the call fails. At kRun: it is not done, and whoever waits gets an exception
  kHang,    // the work that was asked for never ends, and nothing of the card behind it
  kFreeze,  // the card stands still for a while when the work's turn comes
  kOthers,  // nothing fails, but other programs have so much of the card's memory from then on
};

// Of the passes that it is about, the nth and the `times - 1` behind it, counted from 1 since the
// rule was set. With kDeviceLost the card is gone: nothing queued is ever run, and every later call
// fails the same way.
struct FaultRule {
  FaultPoint point = FaultPoint::kRun;
  uint64_t nth = 1;
  ErrorCode code = ErrorCode::kDevice;
  uint64_t times = 1;
  FaultAction action = FaultAction::kFail;
  // What it is about; as it is: every pass.
  std::string op = {};       // launches of this op
  Bytes at_least = 0;        // copies and allocations of so many bytes
  Bytes while_free = 0;      // when the card has less than this; 0: whenever
  bool after_start = false;  // counted from Device::started on
  std::chrono::nanoseconds freeze{0};
  Bytes others = 0;

  static constexpr uint64_t kAlways = std::numeric_limits<uint64_t>::max();
};

// A rule in words:
//   fail POINT #N        hang POINT #N         freeze POINT #N for 1.5s
//   device lost at POINT #N                    others use 2GiB at POINT #N
//   POINT fails          (always; with #N as "fail")
// and behind it in any order: "x3" (so many times; x* for ever), "of OP", "of at least 64KiB",
// "while free < 64 MiB", "after start", "with CODE". POINT is alloc, pin, capture,
// graph_instantiate, copy, launch, replay or run; CODE is that of strata::name, or out_of_memory;
// without one it is the device's, of alloc, pin and graph_instantiate out_of_memory.
// Errors: kInvalidArgument.
FaultRule parse_fault_rule(std::string_view text);

// Whether a word of a list of devices is one of these, right or wrong.
bool is_fault_rule(std::string_view text);

// The rules of one sim. Used by whoever uses the sim, one thread at a time.
class SimFaults {
 public:
  explicit SimFaults(DeviceId device) : device_(device) {}

  void add(const FaultRule& rule);
  // Forgets the rules; work that hangs goes on. A lost card stays lost.
  void clear();
  void resume() { hangs_ = false; }
  void start() { started_ = true; }

  // How often a point was passed since the device was made.
  uint64_t n_passed(FaultPoint point) const { return passed_[static_cast<size_t>(point)]; }
  // The same of each op; copies, graphs and memory have names, too.
  const std::map<std::pair<FaultPoint, std::string>, uint64_t>& n_passed_by_op() const {
    return passed_by_op_;
  }
  bool lost() const { return lost_; }
  bool hangs() const { return hangs_; }
  Bytes others() const { return others_; }

  // ---- for the sim
  struct Site {
    const char* op = "";
    Bytes bytes = 0, free = 0;
  };
  // What becomes of a call. Of work that is asked for, hang and freeze come with its turn.
  struct Verdict {
    std::optional<Fault> fault;
    bool hang = false;
    std::chrono::nanoseconds freeze{0};
  };
  Verdict pass(FaultPoint point, const Site& site);
  void hang() { hangs_ = true; }

 private:
  struct Active {
    FaultRule rule;
    uint64_t n = 0;  // passes that it was about
  };
  bool is_about(const FaultRule& rule, FaultPoint point, const Site& site) const;

  DeviceId device_;
  uint64_t passed_[kFaultPoints] = {};
  std::map<std::pair<FaultPoint, std::string>, uint64_t> passed_by_op_;
  std::vector<Active> rules_;
  bool lost_ = false, hangs_ = false, started_ = false;
  Bytes others_ = 0;
};

// Of a device of Kind::kSim.
SimFaults& faults_of(Device& sim);

}  // namespace strata::device
