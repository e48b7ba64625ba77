#include "strata/server/connection.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/beast/core/ostream.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/status.hpp>
#include <utility>

#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/base/text.h"
#include "strata/server/error_reply.h"
#include "strata/server/http_exchange.h"

namespace strata::server {
namespace {

namespace http = boost::beast::http;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr size_t kReadBytes = 64 << 10;
// What a client may send ahead while its request is answered.
constexpr size_t kAheadBytes = 64 << 10;
constexpr milliseconds kLingerTime{2'000};
// What a client that sends without listening may have under way when its request is refused.
constexpr size_t kLingerBytes = 16 << 20;
// Chunk lines and their extensions: five bytes around each byte of a body are the least economic
// framing that a client may have a reason for.
constexpr uint64_t kFramingPerByte = 8;

std::string_view plain(boost::beast::string_view text) { return {text.data(), text.size()}; }

// Parts "http://host:1/path?query" and "/path?query". False: neither.
bool split_target(std::string_view target, std::string& host, std::string& path) {
  const std::string start = lower(target.substr(0, 8));
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!start.starts_with(scheme)) continue;
    const std::string_view rest = target.substr(scheme.size());
    const size_t slash = std::min(rest.find_first_of("/?"), rest.size());
    host = rest.substr(0, slash);
    if (host.empty()) return false;
    path = slash < rest.size() && rest[slash] == '/' ? rest.substr(slash) : "/";
    path = path.substr(0, path.find('?'));
    return true;
  }
  if (target != "*" && !target.starts_with('/')) return false;
  path = target.substr(0, target.find('?'));
  return true;
}

}  // namespace

std::string head_bytes(unsigned http_version, int status, const Headers& headers) {
  // Whatever a value came from, it cannot end its line.
  const auto clean = [](std::string value) {
    std::erase_if(value, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
    return value;
  };
  std::string head = format("HTTP/1.{} {} {}\r\n", http_version >= 11 ? 1 : 0, status,
                            plain(http::obsolete_reason(static_cast<http::status>(status))));
  for (const auto& [name, value] : headers) head += format("{}: {}\r\n", name, clean(value));
  return head + "\r\n";
}

Connection::Connection(Socket socket, ConnectionContext& context)
    : socket_(std::move(socket)),
      context_(context),
      incoming_(std::make_unique_for_overwrite<char[]>(kReadBytes)),
      input_(context.config.max_header_bytes + kReadBytes + kAheadBytes) {
  boost::system::error_code ignored;
  socket_.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
}

void Connection::start() {
  next_request();
  if (context_.tls != nullptr) return shake_hands();
  read();
}

void Connection::shake_hands() {
  tls_.emplace(socket_, *context_.tls);
  read_deadline_ = since_ + context_.config.header_timeout;
  tls_->async_handshake(boost::asio::ssl::stream_base::server,
                        [self = shared_from_this()](boost::system::error_code error) {
                          if (self->phase_ == Phase::kClosed) return;
                          if (error) return self->close();
                          self->next_request();
                          self->read();
                        });
}

void Connection::refuse_start() {
  next_request();
  // Nothing can be said before a handshake.
  if (context_.tls != nullptr) return close();
  refuse(503, "too many connections", "too_many_connections");
}

void Connection::next_request() {
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(context_.config.max_header_bytes));
  parser_->body_limit(context_.config.max_body_bytes);
  parser_->eager(false);
  phase_ = Phase::kHead;
  at_start_ = true;
  body_taken_ = 0;
  since_ = Clock::now();
  read_deadline_ =
      since_ + (input_.size() > 0 ? context_.config.header_timeout : context_.config.idle_timeout);
}

// ---- reading ----

void Connection::read() {
  if (reading_ || peer_left_ || phase_ == Phase::kClosed) return;
  const size_t room =
      phase_ == Phase::kBusy ? kAheadBytes - std::min(kAheadBytes, input_.size()) : kReadBytes;
  if (room == 0) return;  // goes on with the next request
  reading_ = true;
  const size_t size = std::min(room, input_.max_size() - input_.size());
  const auto done = [self = shared_from_this()](boost::system::error_code error, size_t n) {
    self->reading_ = false;
    if (error)
      self->peer_left(error == boost::asio::error::eof);
    else
      self->on_read(n);
  };
  const auto buffer = boost::asio::buffer(incoming_.get(), size);
  if (tls_)
    tls_->async_read_some(buffer, done);
  else
    socket_.async_read_some(buffer, done);
}

void Connection::on_read(size_t n) {
  if (phase_ == Phase::kClosed) return;
  const bool first = input_.size() == 0;
  boost::asio::buffer_copy(input_.prepare(n), boost::asio::buffer(incoming_.get(), n));
  input_.commit(n);
  switch (phase_) {
    case Phase::kHead:
      if (first) read_deadline_ = Clock::now() + context_.config.header_timeout;
      parse();
      break;
    case Phase::kBody:
      parse();
      break;
    case Phase::kLinger:
      lingered_ += input_.size();
      input_.consume(input_.size());
      if (lingered_ > kLingerBytes) return close();
      break;
    case Phase::kBusy:
    case Phase::kClosed:
      break;
  }
  read();
}

// `politely`: it has closed its half and may still read.
void Connection::peer_left(bool politely) {
  if (phase_ == Phase::kClosed) return;
  peer_left_ = true;
  const bool in_request = phase_ == Phase::kBody || (phase_ == Phase::kHead && input_.size() > 0);
  if (politely && in_request)
    refuse(400, "the request is not complete", "bad_request");
  else if (!politely || exchange_ != nullptr || unsent_bytes() == 0)
    close();
}

void Connection::parse() {
  while ((phase_ == Phase::kHead || phase_ == Phase::kBody) && input_.size() > 0 && parse_some()) {
  }
}

// Some clients send the line end that old servers expected behind a body. False: it may be one, but
// that does not show yet.
bool Connection::skip_empty_line() {
  const std::string_view bytes(static_cast<const char*>(input_.data().data()), input_.size());
  if (bytes == "\r") return false;
  if (bytes.starts_with("\r\n")) input_.consume(2);
  at_start_ = false;
  return input_.size() > 0;
}

// Chunk lines and trailers count for no limit of the body, and each is parsed only when it has come
// as a whole: until then it lies in input_.
bool Connection::framing_fits() {
  const uint64_t n_body = parser_->get().body().size();
  const uint64_t n_framing = body_taken_ - std::min(body_taken_, n_body);
  const uint64_t limit = context_.config.max_header_bytes;
  if (input_.size() <= limit && n_framing <= limit + kFramingPerByte * n_body) return true;
  refuse(400, "the chunk extensions or trailers of the request are too long", "bad_request");
  return false;
}

// False: more bytes are needed, or the request was refused.
bool Connection::parse_some() {
  if (at_start_ && !skip_empty_line()) return false;
  const bool in_body = phase_ == Phase::kBody;
  boost::system::error_code error;
  const size_t used = parser_->put(input_.data(), error);
  input_.consume(used);
  if (in_body) body_taken_ += used;
  if (error == http::error::need_more) {
    if (in_body && framing_fits()) body_grew();
    if (phase_ == Phase::kHead && input_.size() > context_.config.max_header_bytes)
      refuse(431, "the header of the request is too long", "header_too_long");
    return false;
  }
  if (error == http::error::header_limit) {
    refuse(431, "the header of the request is too long", "header_too_long");
    return false;
  }
  if (error == http::error::body_limit) {
    refuse(413, format("the body may have {} bytes", context_.config.max_body_bytes),
           "body_too_long");
    return false;
  }
  if (error) {
    refuse(400, format("the request is not HTTP/1.1: {}", error.message()), "bad_request");
    return false;
  }
  if (phase_ == Phase::kHead && parser_->is_header_done() && !head_done()) return false;
  if (in_body && !parser_->is_done() && !framing_fits()) return false;
  if (phase_ == Phase::kBody) body_grew();
  if (phase_ == Phase::kBody && parser_->is_done()) message_done();
  return phase_ == Phase::kBody && used > 0;
}

// Checks what must be known before the body is read. False: refused.
bool Connection::head_done() {
  const auto& head = parser_->get();
  const auto bad = [&](const char* why) {
    refuse(400, why, "bad_request");
    return false;
  };
  target_host_.clear();
  if (!split_target(plain(head.target()), target_host_, target_path_))
    return bad("the target of the request is no path");
  if (head.count(http::field::host) > 1 ||
      (head.version() >= 11 && head.count(http::field::host) == 0))
    return bad("the request needs exactly one Host");
  // Who may ask is decided by it.
  if (head.version() >= 11 && trimmed(plain(head[http::field::host])).empty())
    return bad("the Host of the request is empty");
  if (target_host_.empty()) target_host_ = plain(head[http::field::host]);
  // Anything else in front of this server might cut the stream elsewhere than we do.
  if (head.count(http::field::transfer_encoding) > 0) {
    if (head.count(http::field::content_length) > 0)
      return bad("Content-Length and Transfer-Encoding exclude each other");
    if (head.version() < 11 || head.count(http::field::transfer_encoding) > 1 ||
        lower(plain(head[http::field::transfer_encoding])) != "chunked")
      return bad("the only Transfer-Encoding is chunked");
  }
  const std::string_view length = plain(head[http::field::content_length]);
  if (head.count(http::field::content_length) > 1 ||
      length.find_first_not_of("0123456789") != std::string_view::npos)
    return bad("Content-Length must be one number");
  const std::string expect = lower(plain(head[http::field::expect]));
  if (!expect.empty() && expect != "100-continue") {
    refuse(417, "the only Expect is 100-continue", "bad_request");
    return false;
  }
  if (parser_->content_length().value_or(0) > context_.config.max_body_bytes) {
    refuse(413, format("the body may have {} bytes", context_.config.max_body_bytes),
           "body_too_long");
    return false;
  }
  phase_ = Phase::kBody;
  since_ = Clock::now();
  read_deadline_ = since_ + context_.config.body_timeout;
  body_share_ = BodyShare(context_.bodies_bytes);
  parser_->eager(true);
  if (!expect.empty() && !parser_->is_done()) send("HTTP/1.1 100 Continue\r\n\r\n");
  return true;
}

void Connection::body_grew() {
  body_share_.set(parser_->get().body().size());
  if (context_.bodies_bytes > context_.config.max_bodies_bytes)
    refuse(503, "too many long requests at the same time", "overloaded");
}

void Connection::message_done() {
  const unsigned version = parser_->get().version();
  const bool keep = parser_->keep_alive();
  phase_ = Phase::kBusy;
  since_ = Clock::now();
  exchange_ = std::make_shared<HttpExchange>(shared_from_this(), take_request(), version, keep);
  // The handler may answer at once, which ends the exchange.
  const std::shared_ptr<HttpExchange> exchange = exchange_;
  exchange->guarded([&] { context_.handle(exchange); });
}

Request Connection::take_request() {
  auto& message = parser_->get();
  Request request;
  request.id = format("{}-{}", context_.id_prefix, ++context_.n_requests);
  request.method = plain(message.method_string());
  request.path = std::move(target_path_);
  request.host = std::move(target_host_);
  for (const auto& field : message)
    request.headers.emplace_back(lower(plain(field.name_string())), plain(field.value()));
  request.body = std::move(message.body());
  request.body_share = std::exchange(body_share_, BodyShare());
  return request;
}

void Connection::refuse(int status, const std::string& message, const std::string& api_code) {
  phase_ = Phase::kBusy;
  body_share_ = BodyShare();
  parser_.reset();
  Response response = error_response(status, message, api_code);
  response.headers.emplace_back("Content-Length", std::to_string(response.body.size()));
  response.headers.emplace_back("Connection", "close");
  log_info(format("{} refused: {}", status, message));
  close_when_flushed_ = true;
  send(head_bytes(11, status, response.headers) + response.body);
}

// ---- writing ----

void Connection::send(std::string_view bytes) {
  if (phase_ == Phase::kClosed) return;
  outbox_.append(bytes);
  write();
}

void Connection::write() {
  if (write_pending_ || phase_ == Phase::kClosed) return;
  if (written_ == writing_.size()) {
    writing_.clear();
    written_ = 0;
    writing_.swap(outbox_);
  }
  if (writing_.empty()) return;
  write_pending_ = true;
  write_deadline_ = Clock::now() + context_.config.write_timeout;
  const auto done = [self = shared_from_this()](boost::system::error_code error, size_t n) {
    self->write_pending_ = false;
    self->on_write(static_cast<bool>(error), n);
  };
  const auto buffer = boost::asio::buffer(writing_.data() + written_, writing_.size() - written_);
  if (tls_)
    tls_->async_write_some(buffer, done);
  else
    socket_.async_write_some(buffer, done);
}

void Connection::on_write(bool failed, size_t n) {
  if (phase_ == Phase::kClosed) return;
  if (failed) return close();
  written_ += n;
  if (unsent_bytes() > 0) return write();
  writing_.clear();
  written_ = 0;
  flushed();
}

void Connection::exchange_done(bool keep) {
  exchange_ = nullptr;
  close_when_flushed_ = close_when_flushed_ || !keep;
  if (unsent_bytes() == 0) flushed();
}

// All is written. The next request begins only now, so that a client which never reads cannot make
// answers pile up.
void Connection::flushed() {
  if (phase_ != Phase::kBusy || exchange_ != nullptr) return;
  if (close_when_flushed_ || peer_left_ || !context_.keep_alive) return linger();
  next_request();
  parse();
  read();
}

// Closing with unread input makes the system discard what the client has not received yet, so the
// rest is read for a while.
void Connection::linger() {
  if (peer_left_) return close();
  boost::system::error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  phase_ = Phase::kLinger;
  since_ = Clock::now();
  read_deadline_ = since_ + kLingerTime;
  input_.consume(input_.size());
  read();
}

// ---- time and end ----

void Connection::tick(TimePoint now) {
  if (phase_ == Phase::kClosed) return;
  if (exchange_ != nullptr) {
    const std::shared_ptr<HttpExchange> exchange = exchange_;
    exchange->tick(now);
    if (phase_ == Phase::kClosed) return;
  }
  if (write_pending_ && now >= write_deadline_) return close();
  if (phase_ == Phase::kBusy || now < read_deadline_) return;
  const bool in_request = phase_ == Phase::kBody || (phase_ == Phase::kHead && input_.size() > 0);
  if (in_request && !close_when_flushed_)
    refuse(408, "the request did not arrive in time", "request_timeout");
  else
    close();
}

void Connection::end_exchange() {
  const std::shared_ptr<HttpExchange> exchange = exchange_;
  if (exchange != nullptr) exchange->leave(Gone::kShutdown);
}

void Connection::close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  boost::system::error_code ignored;
  socket_.close(ignored);
  outbox_.clear();
  body_share_ = BodyShare();
  const auto exchange = std::exchange(exchange_, nullptr);
  if (exchange != nullptr) exchange->leave(Gone::kClient);
}

}  // namespace strata::server
