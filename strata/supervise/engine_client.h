#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strata/wire/messages.h"

namespace strata::supervise {

enum class State : uint8_t {
  kStarting,    // the first engine reads the model
  kReady,       // answers
  kDegraded,    // answers, but steps have failed lately, or the last answers have
  kRestarting,  // the engine died; a new one is on its way
  kFailed,      // given up, at least for a minute
};
// As /health says it: "starting", "ready", ...
std::string_view name(State state);

struct Status {
  State state = State::kStarting;
  std::vector<std::string> reasons;  // why it is not simply ready
  wire::Limits limits;               // of the last Ready; n_context 0: none yet
  // Of the last Ready, null: none yet. Shared by whoever has asked: it is large, and never changes.
  std::shared_ptr<const wire::MemoryPlan> memory;
  wire::Pulse pulse;   // the last of the engine that runs; as new if none runs
  int n_requests = 0;  // accepted and not ended
  int n_restarts = 0;
  int exit_code = 0;  // kFailed before any Ready: what the program should leave with
};

// Where the front sends its requests. Any thread may call.
class EngineClient {
 public:
  struct Callbacks {
    // Progress and Tokens, then Finished or Failed exactly once and last. Called by one thread at a
    // time, which must not be kept waiting; from inside submit() if the request is refused. What it
    // throws ends the watch over the engine, and with it all requests.
    std::function<void(wire::Event&&)> on_event;
    // Set if nothing is passed on to the client before the end: the request may then be run again
    // after its first token, too. Called before that: forget what has come.
    std::function<void()> on_restart;
  };

  virtual ~EngineClient() = default;
  // Never throws for the engine's sake: a refusal is a Failed with kResourceExhausted.
  virtual wire::RequestId submit(wire::Submit submit, Callbacks callbacks) = 0;
  // The terminal event still comes. Unknown and ended requests are ignored.
  virtual void cancel(wire::RequestId request) = 0;
  virtual Status status() const = 0;
};

}  // namespace strata::supervise
