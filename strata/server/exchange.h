#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::server {

// Counts bytes of bodies against Config::max_bodies_bytes for as long as it lives.
class BodyShare {
 public:
  BodyShare() = default;
  explicit BodyShare(std::atomic<size_t>& total) : total_(&total) {}
  BodyShare(BodyShare&& other) noexcept
      : total_(std::exchange(other.total_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  BodyShare& operator=(BodyShare&& other) noexcept {
    std::swap(total_, other.total_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~BodyShare() { set(0); }

  void set(size_t bytes) {
    if (total_ != nullptr) *total_ += bytes - bytes_;  // wraps around as it should
    bytes_ = bytes;
  }

 private:
  std::atomic<size_t>* total_ = nullptr;
  size_t bytes_ = 0;
};

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string id;      // ours, in the log and in X-Request-Id
  std::string method;  // "GET"
  std::string path;    // as sent, without query; of an absolute target the path alone
  std::string host;    // of the Host field or the absolute target, as sent
  Headers headers;     // names in lower case
  std::string body;
  BodyShare body_share;

  // The first field of this (lower case) name; nullptr if there is none.
  const std::string* header(std::string_view name) const {
    for (const auto& [key, value] : headers)
      if (key == name) return &value;
    return nullptr;
  }
};

struct Response {
  int status = 200;
  Headers headers;
  std::string body;
};

// A stream of events. Its headers go out with its first bytes, so a reply() instead is possible
// until then.
struct Stream {
  Headers headers;
  std::string filler;  // sent when the stream has been silent for `interval`
  std::chrono::milliseconds interval{3'000};
};

enum class Gone {
  kClient,    // closed the connection, or does not read: nobody listens any more
  kShutdown,  // the server ends; the client still listens
};

// One request and the way back to its client. Lives as long as anyone who may still answer holds
// it: the connection, a worker, the engine's callbacks.
// Threads: all but post() and request() belongs to the transport's thread.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Any thread. Runs `work` later on the transport's thread; not at all if the server has ended.
  // What it throws ends this exchange: a 500, or a cut stream.
  virtual void post(std::function<void()> work) = 0;

  // Belongs to whoever works on the request: the handler, then the worker it passes it to.
  virtual Request& request() = 0;

  // Put on the answer, whatever it becomes.
  virtual void add_headers(Headers headers) = 0;

  // The whole answer, once. Nothing if the client is gone.
  virtual void reply(Response response) = 0;

  virtual void begin_stream(Stream stream) = 0;
  virtual void write(std::string_view bytes) = 0;
  virtual void end_stream() = 0;
  // The headers of the stream are out: an error has to be told inside it.
  virtual bool stream_started() const = 0;

  // Called at most once, before the answer is complete. Closing its half of the connection counts
  // as going, so a client waits with both halves open.
  virtual void on_gone(std::function<void(Gone)> call) = 0;
  virtual bool gone() const = 0;

  // Added to the line in the log.
  virtual void note(std::string text) = 0;
};

}  // namespace strata::server
