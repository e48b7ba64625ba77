#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "strata/server/config.h"
#include "strata/server/exchange.h"

namespace strata::server {

// The HTTP/1.1 transport: reads requests under the limits of Config, hands each to a handler, and
// writes what the exchange is told. Knows no path and no JSON beyond its own refusals (400, 408,
// 413, 431, 503). One thread, the one that runs it.
class HttpServer {
 public:
  struct Hooks {
    std::function<void(std::shared_ptr<Exchange>)> handle;
    // An exchange is over, with what status; 499: its client left before.
    std::function<void(std::string_view path, int status)> done;
    std::function<void()> tick;          // about 20 times a second
    std::function<void(int)> on_signal;  // SIGTERM, SIGINT, SIGHUP after catch_signals()
  };

  // Binds and listens, so connections wait from now on. Errors: kInvalidArgument for a host that
  // is no address of this machine, kIo for a port that cannot be had.
  explicit HttpServer(const Config& config);
  ~HttpServer();

  uint16_t port() const;
  std::string url() const;  // "http://127.0.0.1:8080"

  // From now on signals wait for on_signal. A SIGHUP that is ignored (nohup) stays ignored. SIGPIPE
  // is ignored: who reads the log may go without ending the server.
  void catch_signals();

  // Until stop(). Exchanges may outlive this call, not the server.
  void run(Hooks hooks);
  // Any thread.
  void post(std::function<void()> work);

  // The rest is for the thread that runs.
  size_t n_busy() const;  // requests without a complete answer, and answers not written yet
  // No connection is kept after its present request; idle ones are closed.
  void refuse_keep_alive();
  // Tells the running requests to end: Gone::kShutdown.
  void end_exchanges();
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace strata::server
