#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "strata/base/error.h"

namespace strata::supervise {

// How an engine ended, and what it was doing.
struct Death {
  enum class How : uint8_t {
    kExit,     // code: its exit status
    kSignal,   // code: the signal's number
    kStalled,  // killed by us; detail says why
    kBroken,   // sent what is no message, killed by us; detail says what
    kLaunch,   // could not even be started; detail says why
  };
  How how = How::kExit;
  int code = 0;
  std::string detail;              // kExit: its last words, if it had any
  std::optional<ErrorCode> error;  // kExit: of the last words
  bool was_ready = false;
  bool had_work = false;  // requests were running
  bool answered = false;  // it had finished a request before
  std::string hang;       // work that did not end was why: what, and where
  std::string phase;      // of its last pulse
  std::chrono::milliseconds uptime{0};
};

// In plain words: "killed by signal 9, probably out of memory, while reading weights 40 %", "left
// with code 70 (a device was lost: the bus is silent), while answering".
std::string describe(const Death& death);

// When to start the next engine, if at all. Restarts after exit codes 70 and 74, after signals,
// stalls and broken messages, and after 71 once an engine had been ready (a dead engine's memory
// returns late); other codes would come back the same. The third death in a row of one kind at one
// place is the last, unless the engine had answered a request or lived a minute before it; a kill
// from outside of an idle engine never is. Hangs are counted by themselves, whatever was answered
// in between: after the second of a kind the engine is started with less, after the third not at
// all. One thread at a time.
class RestartPolicy {
 public:
  struct Verdict {
    bool give_up = false;
    std::chrono::milliseconds delay{0};  // before the next start
    std::string reason;
    bool step_down = false;  // also of the starts after that
  };

  struct Settings {
    std::chrono::milliseconds first_delay{100};
    std::chrono::milliseconds longest_delay{10'000};
    std::chrono::milliseconds healthy_after{60'000};
    int same_deaths = 3;
    std::chrono::milliseconds hang_memory{3'600'000};  // who lived longer begins to count anew
  };

  RestartPolicy() = default;
  explicit RestartPolicy(const Settings& settings) : settings_(settings) {}

  Verdict on_death(const Death& death);

 private:
  // An engine that left with this status may do better the next time.
  bool passes(int status) const;
  int count_hang(const Death& death);

  Settings settings_;
  int n_hangs_ = 0;  // alike, in a row
  bool stepped_down_ = false;
  std::string last_hang_;
  bool ever_ready_ = false;
  int n_quick_ = 0;  // deaths in a row without health in between
  int n_same_ = 0;   // of these, the last ones that were alike
  std::string last_place_;
};

}  // namespace strata::supervise
