#pragma once

// Internal to the transport: the one header with Boost in it.

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "strata/server/config.h"
#include "strata/server/exchange.h"

namespace strata::server {

// What all connections of one server share.
struct ConnectionContext {
  boost::asio::io_context& io;
  const Config& config;
  boost::asio::ssl::context* tls;  // null: plain
  std::function<void(std::shared_ptr<Exchange>)> handle;
  std::function<void(std::string_view path, int status)> done;  // may be empty
  std::atomic<size_t> bodies_bytes = 0;
  uint64_t n_requests = 0;
  std::string id_prefix;
  bool keep_alive = true;
};

class HttpExchange;

// One client's connection. One read and one write are under way at most; while a request is being
// answered the read goes on, because that is how its end is noticed. Kept alive by its pending
// operations and its exchange; belongs to the transport's thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using TimePoint = std::chrono::steady_clock::time_point;

  Connection(Socket socket, ConnectionContext& context);

  void start();
  // Answers 503 without reading.
  void refuse_start();
  // Looks at the deadlines; sends fillers.
  void tick(TimePoint now);

  bool closed() const { return phase_ == Phase::kClosed; }
  bool waits_for_request() const { return phase_ == Phase::kHead && unsent_bytes() == 0; }
  bool idle() const { return waits_for_request() && input_.size() == 0; }
  bool busy() const { return phase_ == Phase::kBody || exchange_ != nullptr || unsent_bytes() > 0; }
  TimePoint since() const { return since_; }
  void end_exchange();
  void close();

 private:
  friend class HttpExchange;
  enum class Phase { kHead, kBody, kBusy, kLinger, kClosed };
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  void next_request();
  void shake_hands();
  void read();
  void on_read(size_t n);
  void parse();
  bool parse_some();
  bool skip_empty_line();
  bool framing_fits();
  bool head_done();
  void body_grew();
  void message_done();
  Request take_request();
  void refuse(int status, const std::string& message, const std::string& api_code);
  void peer_left(bool politely);

  void send(std::string_view bytes);
  void write();
  void on_write(bool failed, size_t n);
  size_t unsent_bytes() const { return outbox_.size() + writing_.size() - written_; }
  void exchange_done(bool keep);
  void flushed();
  void linger();

  Socket socket_;
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;  // over socket_
  ConnectionContext& context_;
  Phase phase_ = Phase::kHead;
  TimePoint since_;  // the present phase began
  TimePoint read_deadline_;
  TimePoint write_deadline_;

  // A read under way must not point into input_, which moves when something is taken from it.
  std::unique_ptr<char[]> incoming_;
  boost::beast::flat_buffer input_;
  bool reading_ = false;
  bool peer_left_ = false;
  std::optional<Parser> parser_;
  bool at_start_ = true;     // nothing of the request was looked at
  uint64_t body_taken_ = 0;  // bytes of the body and of its framing
  size_t lingered_ = 0;      // bytes thrown away
  std::string target_path_, target_host_;
  BodyShare body_share_;

  std::string outbox_;   // behind writing_
  std::string writing_;  // belongs to the write under way
  size_t written_ = 0;
  bool write_pending_ = false;
  bool close_when_flushed_ = false;

  std::shared_ptr<HttpExchange> exchange_;  // owners: this, and those who may still answer
};

// The head of an answer as bytes.
std::string head_bytes(unsigned http_version, int status, const Headers& headers);

}  // namespace strata::server
