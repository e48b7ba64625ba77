#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "strata/server/config.h"
#include "strata/server/frontend.h"
#include "strata/supervise/engine_client.h"

namespace strata::server {

class HttpServer;
class Workers;
struct Services;

// The server: from a bound port to a drained end.
//   Server server(config);          // before the model is read
//   server.catch_signals();
//   ... tokenizer, template, engine client ...
//   int code = server.run(frontend, engine);
// The engine client ends (Supervisor::stop) after run() and before the server does: its callbacks
// post to the server.
class Server {
 public:
  // Checks the access rules and binds. Errors: kInvalidArgument, kIo; see Access and HttpServer.
  explicit Server(Config config);
  ~Server();

  const Config& config() const { return config_; }
  // "http://127.0.0.1:8080", with the port that was chosen.
  std::string url() const;
  uint16_t port() const;

  // SIGTERM, SIGINT and SIGHUP from now on begin the drain, also before run(); the second of them
  // ends the process at once, with 128 + its number. SIGPIPE is ignored.
  void catch_signals();

  // Serves until a signal or stop(): then new requests are refused, running ones may end within
  // config.drain_limit, and the rest end with an error. Returns the exit code: 0, or the engine's
  // if it failed before it was ever ready. If a thread is still at work on a request a while after
  // that (reading a very long one), the process ends at once with this code.
  int run(const Frontend& frontend, supervise::EngineClient& engine);

  // Any thread. Begins the drain.
  void stop();

 private:
  void begin_drain();
  void tick(const supervise::EngineClient& engine, Workers& workers);

  const Config config_;
  std::unique_ptr<HttpServer> http_;
  std::atomic<bool> draining_ = false;
  int exit_code_ = 0;
  std::chrono::steady_clock::time_point drain_deadline_;
  enum class End { kNotYet, kTold, kFlushed } end_ = End::kNotYet;
};

}  // namespace strata::server
