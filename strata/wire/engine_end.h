#pragma once

#include <chrono>
#include <functional>

#include "strata/wire/link.h"
#include "strata/wire/messages.h"

namespace strata::wire {

// What the engine process does with its end of the link, on the thread that calls serve_engine().
struct EngineEnd {
  // Each command, in order. Must not wait for the engine.
  std::function<void(RequestId, Command&&)> on_command;
  // The state to report, twice a second. Must not wait for the engine: its silence means that the
  // process is dead.
  std::function<Pulse()> pulse;
  std::chrono::milliseconds pulse_interval{500};
};

// Runs until a Shutdown has come and been handed over, or the front is gone, which is handed over
// as a Shutdown, too. Start it on a thread of its own before the model is read, so that pulses
// tell how far that is; send Ready and events through the same link from the engine's thread.
// Errors: kCorruptFile, kUnsupported for a broken frame, and those of the functions.
void serve_engine(Link& link, const EngineEnd& end);

}  // namespace strata::wire
