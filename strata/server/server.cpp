#include "strata/server/server.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/server/access.h"
#include "strata/server/http.h"
#include "strata/server/routes.h"
#include "strata/server/services.h"
#include "strata/server/usage_json.h"
#include "strata/server/workers.h"

namespace strata::server {
namespace {

constexpr size_t kMaxWaitingJobs = 256;
// For the last bytes of answers that had to be cut.
constexpr std::chrono::milliseconds kFlushTime{500};
// For threads that still read what nobody waits for any more.
constexpr std::chrono::milliseconds kWorkTime{2'000};

Config checked(Config config) {
  Access{config};
  return config;
}

}  // namespace

Server::Server(Config config)
    : config_(checked(std::move(config))), http_(std::make_unique<HttpServer>(config_)) {}

Server::~Server() = default;

std::string Server::url() const { return http_->url(); }
uint16_t Server::port() const { return http_->port(); }
void Server::catch_signals() { http_->catch_signals(); }
void Server::stop() {
  http_->post([this] { begin_drain(); });
}

int Server::run(const Frontend& frontend, supervise::EngineClient& engine) {
  Metrics metrics;
  RunningTable running;
  Workers workers(config_.n_workers, kMaxWaitingJobs);
  const Services services{config_, frontend, engine,    workers,
                          metrics, running,  draining_, unix_time()};
  const Routes routes(config_, services);
  HttpServer::Hooks hooks;
  hooks.handle = [&](std::shared_ptr<Exchange> exchange) { routes.handle(exchange); };
  hooks.done = [&](std::string_view path, int status) {
    metrics.request(routes.known(path), status);
  };
  hooks.tick = [&] { tick(engine, workers); };
  hooks.on_signal = [&](int number) {
    // Nothing may keep an impatient user waiting; the engine dies with this process.
    if (draining_) std::_Exit(128 + number);
    log_info(format("signal {}: running requests may end within {} ms", number,
                    config_.drain_limit.count()));
    begin_drain();
  };
  // Ends when no job runs: jobs use all of the above.
  http_->run(std::move(hooks));
  return exit_code_;
}

void Server::begin_drain() {
  if (draining_.exchange(true)) return;
  drain_deadline_ = std::chrono::steady_clock::now() + config_.drain_limit;
  http_->refuse_keep_alive();
}

void Server::tick(const supervise::EngineClient& engine, Workers& workers) {
  const auto now = std::chrono::steady_clock::now();
  if (!draining_) {
    const supervise::Status status = engine.status();
    // There has never been a model to serve, and its reader has said why.
    if (status.state == supervise::State::kFailed && status.limits.n_context == 0) {
      exit_code_ = status.exit_code;
      begin_drain();
    }
    return;
  }
  if (http_->n_busy() == 0 && workers.idle()) return http_->stop();
  if (end_ == End::kFlushed && workers.idle()) return http_->stop();
  if (now < drain_deadline_) return;
  switch (end_) {
    case End::kNotYet:
      http_->end_exchanges();
      workers.close();
      end_ = End::kTold;
      drain_deadline_ = now + kFlushTime;
      return;
    case End::kTold:
      end_ = End::kFlushed;
      drain_deadline_ = now + kWorkTime;
      return;
    case End::kFlushed:
      // A thread cannot be ended, and what it uses must not go before it.
      log_error("a request is still being read; the process ends without it");
      std::_Exit(exit_code_);
  }
}

}  // namespace strata::server
