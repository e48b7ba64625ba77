#include "strata/server/http_exchange.h"

#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/log.h"
#include "strata/server/error_reply.h"

namespace strata::server {
namespace {

using std::chrono::milliseconds;

constexpr int kClientLeft = 499;  // in the log and the metrics only

// What a client wrote, fit for one line.
std::string printable(std::string_view text) {
  std::string result(text.substr(0, 100));
  for (char& c : result)
    if (c < ' ' || c > '~') c = '?';
  if (text.size() > 100) result += "...";
  return result;
}

std::string chunk(std::string_view bytes) { return format("{:x}\r\n{}\r\n", bytes.size(), bytes); }

}  // namespace

HttpExchange::HttpExchange(std::shared_ptr<Connection> connection, Request request,
                           unsigned version, bool keep_alive)
    : connection_(std::move(connection)),
      io_(connection_->context_.io),
      request_(std::move(request)),
      method_(request_.method),
      path_(request_.path),
      version_(version),
      keep_alive_(keep_alive),
      started_(std::chrono::steady_clock::now()),
      last_sent_(started_) {}

void HttpExchange::post(std::function<void()> work) {
  boost::asio::post(io_,
                    [self = shared_from_this(), work = std::move(work)] { self->guarded(work); });
}

void HttpExchange::guarded(const std::function<void()>& work) noexcept {
  try {
    try {
      work();
    } catch (const std::exception& e) {
      fail(e.what());
    }
  } catch (...) {
    // Nothing could be said, not even in the log: what is left is to go.
    try {
      if (!over()) connection_->close();
    } catch (...) {
    }
  }
}

void HttpExchange::fail(const char* why) {
  log_error(format("{} {}", request_.id, why));
  if (over()) return;
  if (head_sent_) return connection_->close();
  stream_.reset();
  reply(error_response(Error(ErrorCode::kInternal, "internal error"), request_.id));
}

void HttpExchange::add_headers(Headers headers) {
  for (auto& header : headers) extra_headers_.push_back(std::move(header));
}

void HttpExchange::send_head(int status, Headers headers) {
  keep_alive_ = keep_alive_ && connection_->context_.keep_alive;
  headers.emplace_back("X-Request-Id", request_.id);
  headers.emplace_back("X-Content-Type-Options", "nosniff");
  headers.emplace_back("Connection", keep_alive_ ? "keep-alive" : "close");
  for (auto& header : extra_headers_) headers.push_back(std::move(header));
  connection_->send(head_bytes(version_, status, headers));
  head_sent_ = true;
}

void HttpExchange::reply(Response response) {
  if (over() || head_sent_) return;
  if (response.status != 204)
    response.headers.emplace_back("Content-Length", std::to_string(response.body.size()));
  send_head(response.status, std::move(response.headers));
  if (method_ != "HEAD") connection_->send(response.body);
  finish(response.status);
}

void HttpExchange::begin_stream(Stream stream) {
  stream_ = std::move(stream);
  // Without chunks the end of the connection is the end of the answer.
  if (version_ < 11) keep_alive_ = false;
  last_sent_ = std::chrono::steady_clock::now();
}

void HttpExchange::write(std::string_view bytes) {
  if (over() || !stream_ || bytes.empty()) return;
  if (!head_sent_) {
    if (version_ >= 11) stream_->headers.emplace_back("Transfer-Encoding", "chunked");
    send_head(200, std::move(stream_->headers));
  }
  // Who reads has not had the time for what is written now, nor, at the beginning, for what some
  // APIs begin with: the request once more.
  if (opening_bytes_ == 0) opening_bytes_ = bytes.size();
  const size_t limit = connection_->context_.config.max_unsent_bytes + opening_bytes_;
  if (connection_->unsent_bytes() > limit) {
    log_warning(format("{} the client does not read; its stream is cut", request_.id));
    connection_->close();
    return;
  }
  connection_->send(version_ >= 11 ? chunk(bytes) : std::string(bytes));
  last_sent_ = std::chrono::steady_clock::now();
}

void HttpExchange::end_stream() {
  if (over() || !stream_) return;
  if (version_ >= 11) connection_->send("0\r\n\r\n");
  finish(200);
}

void HttpExchange::tick(TimePoint now) {
  if (stream_ && !over() && now - last_sent_ >= stream_->interval) {
    // write() may change the stream it is given a part of.
    const std::string filler = stream_->filler;
    write(filler);
  }
}

void HttpExchange::finish(int status) {
  done_ = true;
  on_gone_ = nullptr;
  ended(status);
  const auto connection = std::exchange(connection_, nullptr);
  connection->exchange_done(keep_alive_);
}

void HttpExchange::leave(Gone why) {
  if (over()) return;
  const auto call = std::exchange(on_gone_, nullptr);
  if (why == Gone::kClient) {
    gone_ = true;
    ended(kClientLeft);
    connection_ = nullptr;
  }
  if (call) call(why);
}

void HttpExchange::ended(int status) const {
  const auto took =
      std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - started_);
  const std::string line =
      format("{} {} {} {} {} ms{}{}", request_.id, printable(method_), printable(path_), status,
             took.count(), note_.empty() ? "" : " ", note_);
  // What asks every second must not bury the rest.
  const bool often = path_ == "/health" || path_ == "/metrics";
  log(often ? LogLevel::kDebug : LogLevel::kInfo, line);
  if (connection_->context_.done) connection_->context_.done(path_, status);
}

}  // namespace strata::server
