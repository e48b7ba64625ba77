#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "strata/server/server.h"
#include "strata/server/testing/fake_engine.h"
#include "strata/server/testing/fake_frontend.h"
#include "strata/server/testing/raw_client.h"

namespace strata::server::testing {

inline Config test_config() {
  Config config;
  config.port = 0;
  config.model_name = "tiny";
  config.drain_limit = std::chrono::milliseconds(100);
  return config;
}

// A real server on a free port, with a fake engine and a fake tokenizer behind it.
class TestServer {
 public:
  explicit TestServer(Config config = test_config()) : server(std::move(config)) {
    thread_ = std::thread([this] { exit_code = server.run(frontend, engine); });
  }
  ~TestServer() {
    server.stop();
    if (thread_.joinable()) thread_.join();
  }
  uint16_t port() const { return server.port(); }
  RawClient client() const { return RawClient(port()); }
  // On a connection of its own.
  Reply ask(std::string_view method, std::string_view path, std::string_view body = "",
            std::string_view more_headers = "") const {
    return client().ask(method, path, body, more_headers);
  }
  Reply post(std::string_view path, std::string_view body) const {
    return ask("POST", path, body, "Content-Type: application/json\r\n");
  }
  // The exit code of a server that ends by itself.
  int wait() {
    thread_.join();
    return exit_code;
  }
  // Ends the server as a signal would.
  int drain() {
    server.stop();
    thread_.join();
    return exit_code;
  }

  FakeEngine engine;
  FakeFrontend frontend;
  Server server;
  int exit_code = -1;

 private:
  std::thread thread_;
};

}  // namespace strata::server::testing
