#include "strata/server/http.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <exception>
#include <list>
#include <memory>
#include <random>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/server/connection.h"

namespace strata::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr std::chrono::milliseconds kTick{50};

tcp::endpoint resolve(asio::io_context& io, const Config& config) {
  std::string host = config.host;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  boost::system::error_code error;
  const auto address = asio::ip::make_address(host, error);
  if (!error) return {address, config.port};
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(host, "", tcp::resolver::passive, error);
  if (error || found.empty())
    throw Error(ErrorCode::kInvalidArgument,
                format("host {} is no address: {}", config.host, error.message()));
  // IPv4 first: that is what clients of "localhost" try.
  for (const auto& entry : found)
    if (entry.endpoint().address().is_v4()) return {entry.endpoint().address(), config.port};
  return {found.begin()->endpoint().address(), config.port};
}

void check(const boost::system::error_code& error, const tcp::endpoint& endpoint) {
  if (!error) return;
  const std::string where = format("{} port {}", endpoint.address().to_string(), endpoint.port());
  if (error == asio::error::address_in_use)
    throw Error(
        ErrorCode::kIo,
        format("{} is in use by another program ({}), perhaps a strata that runs already; choose "
               "another one with --port, 0 for any that is free",
               where, error.message()));
  if (error == asio::error::access_denied)
    throw Error(ErrorCode::kIo, format("{} may not be used ({}); choose a port above 1023", where,
                                       error.message()));
  if (error == boost::system::errc::address_not_available)
    throw Error(ErrorCode::kInvalidArgument,
                format("{} is no address of this machine ({})", where, error.message()));
  throw Error(ErrorCode::kIo, format("cannot listen on {}: {}", where, error.message()));
}

// Null without the files.
std::unique_ptr<asio::ssl::context> tls_context(const Config& config) {
  if (config.tls_cert_file.empty() != config.tls_key_file.empty())
    throw Error(ErrorCode::kInvalidArgument,
                "TLS needs a certificate and its key: give both files");
  if (config.tls_cert_file.empty()) return nullptr;
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  context->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                       asio::ssl::context::no_tlsv1_1);
  const auto check_file = [](const boost::system::error_code& error, const std::string& file) {
    if (error)
      throw Error(ErrorCode::kInvalidArgument, format("TLS file {}: {}", file, error.message()));
  };
  boost::system::error_code error;
  context->use_certificate_chain_file(config.tls_cert_file, error);
  check_file(error, config.tls_cert_file);
  context->use_private_key_file(config.tls_key_file, asio::ssl::context::pem, error);
  check_file(error, config.tls_key_file);
  return context;
}

std::string random_prefix() {
  std::random_device random;
  return format("{:08x}", random());
}

}  // namespace

struct HttpServer::Impl {
  explicit Impl(const Config& config_in)
      : config(config_in),
        tls(tls_context(config)),
        acceptor(io),
        signals(io),
        timer(io),
        context{io, config, tls.get(), {}, {}} {
    context.id_prefix = random_prefix();
    const tcp::endpoint endpoint = resolve(io, config);
    boost::system::error_code error;
    acceptor.open(endpoint.protocol(), error);
    check(error, endpoint);
    // Else a restart right after a crash waits for old connections to time out.
    acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    acceptor.bind(endpoint, error);
    check(error, endpoint);
    acceptor.listen(asio::socket_base::max_listen_connections, error);
    check(error, endpoint);
  }

  void accept() {
    acceptor.async_accept([this](boost::system::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      // Out of descriptors: the next tick tries again.
      accept_failed = static_cast<bool>(error);
      if (error) return;
      add(std::move(socket));
      accept();
    });
  }

  void add(tcp::socket socket) {
    std::erase_if(connections, [](const auto& each) { return each->closed(); });
    auto connection = std::make_shared<Connection>(std::move(socket), context);
    const bool room =
        connections.size() < static_cast<size_t>(config.max_connections) || close_oldest_waiting();
    connections.push_back(connection);
    if (room)
      connection->start();
    else
      connection->refuse_start();
  }

  // Makes room: of those who have not sent a request, who waits longest.
  bool close_oldest_waiting() {
    Connection* oldest = nullptr;
    for (const auto& each : connections)
      if (each->waits_for_request() && (!oldest || each->since() < oldest->since()))
        oldest = each.get();
    if (oldest != nullptr) oldest->close();
    return oldest != nullptr;
  }

  void tick() {
    timer.expires_after(kTick);
    timer.async_wait([this](boost::system::error_code error) {
      if (error) return;
      tick();  // first: what throws below must not be the last tick
      const auto now = std::chrono::steady_clock::now();
      std::erase_if(connections, [](const auto& each) { return each->closed(); });
      // A filler may close a connection, never add one.
      for (const auto& each : connections) each->tick(now);
      if (std::exchange(accept_failed, false)) accept();
      if (hooks.tick) hooks.tick();
    });
  }

  void wait_for_signal() {
    signals.async_wait([this](boost::system::error_code error, int number) {
      if (error) return;
      wait_for_signal();
      if (hooks.on_signal) hooks.on_signal(number);
    });
  }

  const Config config;
  const std::unique_ptr<asio::ssl::context> tls;
  asio::io_context io{1};
  tcp::acceptor acceptor;
  asio::signal_set signals;
  asio::steady_timer timer;
  ConnectionContext context;
  Hooks hooks;
  bool accept_failed = false;
  // Owners: this, their pending operations, their exchanges.
  std::list<std::shared_ptr<Connection>> connections;
};

HttpServer::HttpServer(const Config& config) : impl_(std::make_unique<Impl>(config)) {}

HttpServer::~HttpServer() = default;

uint16_t HttpServer::port() const { return impl_->acceptor.local_endpoint().port(); }

std::string HttpServer::url() const {
  const tcp::endpoint endpoint = impl_->acceptor.local_endpoint();
  const std::string address = endpoint.address().to_string();
  const char* scheme = impl_->tls == nullptr ? "http" : "https";
  return endpoint.address().is_v6() ? format("{}://[{}]:{}", scheme, address, endpoint.port())
                                    : format("{}://{}:{}", scheme, address, endpoint.port());
}

void HttpServer::catch_signals() {
  impl_->signals.add(SIGINT);
  impl_->signals.add(SIGTERM);
  std::signal(SIGPIPE, SIG_IGN);
  // Asking means setting.
  const auto before = std::signal(SIGHUP, SIG_IGN);
  if (before != SIG_IGN) {
    std::signal(SIGHUP, before);
    impl_->signals.add(SIGHUP);
  }
}

void HttpServer::run(Hooks hooks) {
  impl_->hooks = std::move(hooks);
  impl_->context.handle = impl_->hooks.handle;
  impl_->context.done = impl_->hooks.done;
  impl_->accept();
  impl_->tick();
  impl_->wait_for_signal();
  // What concerns a request is caught there; nothing else may end the others' answers either.
  while (true) {
    try {
      impl_->io.run();
      break;
    } catch (const std::exception& e) {
      log_error(format("the transport goes on after: {}", e.what()));
    }
  }
  // While those who asked to be told are still there.
  for (const auto& each : impl_->connections) each->close();
}

void HttpServer::post(std::function<void()> work) { asio::post(impl_->io, std::move(work)); }

size_t HttpServer::n_busy() const {
  size_t n = 0;
  for (const auto& each : impl_->connections) n += each->busy() ? 1 : 0;
  return n;
}

void HttpServer::refuse_keep_alive() {
  impl_->context.keep_alive = false;
  for (const auto& each : impl_->connections)
    if (each->idle()) each->close();
}

void HttpServer::end_exchanges() {
  for (const auto& each : impl_->connections) each->end_exchange();
}

void HttpServer::stop() {
  boost::system::error_code ignored;
  impl_->acceptor.close(ignored);
  impl_->io.stop();
}

}  // namespace strata::server
