#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "strata/server/connection.h"
#include "strata/server/exchange.h"

namespace strata::server {

// The exchange of a connection. After its answer is complete, or its client gone, every call does
// nothing.
class HttpExchange final : public Exchange, public std::enable_shared_from_this<HttpExchange> {
 public:
  using TimePoint = Connection::TimePoint;

  HttpExchange(std::shared_ptr<Connection> connection, Request request, unsigned version,
               bool keep_alive);

  void post(std::function<void()> work) override;
  Request& request() override { return request_; }
  void add_headers(Headers headers) override;
  void reply(Response response) override;
  void begin_stream(Stream stream) override;
  void write(std::string_view bytes) override;
  void end_stream() override;
  bool stream_started() const override { return head_sent_; }
  void on_gone(std::function<void(Gone)> call) override { on_gone_ = std::move(call); }
  bool gone() const override { return gone_; }
  void note(std::string text) override { note_ = std::move(text); }

  // Runs `work` for this exchange. What it throws becomes a 500, or the cut of a stream that has
  // begun: an exception concerns its own request and never leaves for the thread's loop.
  void guarded(const std::function<void()>& work) noexcept;

  // For the connection.
  void tick(TimePoint now);
  void leave(Gone why);

 private:
  void fail(const char* why);
  void send_head(int status, Headers headers);
  void finish(int status);
  void ended(int status) const;
  bool over() const { return gone_ || done_; }

  std::shared_ptr<Connection> connection_;  // owners: its operations and this; until finished
  boost::asio::io_context& io_;
  Request request_;
  const std::string method_, path_;  // for the log
  const unsigned version_;           // 10 or 11
  bool keep_alive_;
  Headers extra_headers_;
  std::optional<Stream> stream_;
  bool head_sent_ = false;
  bool done_ = false;
  bool gone_ = false;
  std::function<void(Gone)> on_gone_;
  std::string note_;
  TimePoint started_;
  TimePoint last_sent_;
  size_t opening_bytes_ = 0;  // of the first event
};

}  // namespace strata::server
