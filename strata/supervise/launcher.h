#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strata/wire/transport.h"

namespace strata::supervise {

struct Exit {
  bool by_signal = false;
  int code = 0;  // exit status, or the signal's number
};

// A started engine. The destructor kills it if it still runs, and leaves nothing behind.
class EngineProcess {
 public:
  virtual ~EngineProcess() = default;
  // Once.
  virtual std::unique_ptr<wire::Transport> take_transport() = 0;
  // How it ended, waiting at most `limit` for that.
  virtual std::optional<Exit> wait_exit(std::chrono::milliseconds limit) = 0;
  virtual void kill() = 0;
  virtual int64_t id() const = 0;  // for the log
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  // Errors, after which none is tried: kIo, and what else a launcher knows. The engine dies with
  // the thread that calls this, so that has to be one which lives as long as the program needs an
  // engine.
  // step_down: with less of what may have made the last ones hang.
  virtual std::unique_ptr<EngineProcess> launch(uint32_t incarnation, bool step_down) = 0;
};

// Starts `argv` (the first is the path of the program) with "--fd 3 --incarnation N" added, and
// "--step-down 1" where that is asked for, one end
// of a socket as descriptor 3, nothing else open but stdout and stderr, stdin empty, SIGPIPE
// ignored, and a process group of its own, so that Ctrl-C reaches the front alone.
std::unique_ptr<Launcher> process_launcher(std::vector<std::string> argv);

}  // namespace strata::supervise
