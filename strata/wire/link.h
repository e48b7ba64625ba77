#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "strata/wire/codec.h"
#include "strata/wire/messages.h"
#include "strata/wire/transport.h"

namespace strata::wire {

// One end of the channel between front and engine. Any thread sends and never waits: what does not
// fit into the socket is kept, and written by the one thread that turns the link.
class Link {
 public:
  using OnFrame = std::function<void(const Frame&, std::string_view payload)>;

  // `engine` is the incarnation that both ends agree on.
  Link(std::unique_ptr<Transport> transport, uint32_t engine);

  // Any thread. To a peer that is gone they do nothing: turn() tells.
  void send(std::span<const Addressed> events);  // one write for all of them
  void send(RequestId request, const Event& event);
  void send(RequestId request, const Command& command);

  // Any thread. Bytes sent that the socket has not taken yet. An engine that finds much here
  // pauses.
  size_t backlog_bytes() const { return backlog_bytes_.load(std::memory_order_relaxed); }

  // Waits at most `limit`, writes what it can of the backlog, and hands each frame that has come to
  // `on_frame`; those of another incarnation are dropped. False: the peer is gone and all frames it
  // sent have been handed over. Errors: those of FrameReader::next and of on_frame.
  bool turn(std::chrono::milliseconds limit, const OnFrame& on_frame);

  // Any thread: ends a turn that waits.
  void wake() { transport_->wake(); }

  uint32_t engine() const { return engine_; }

 private:
  void push(const std::string& bytes);
  void flush_locked();

  std::unique_ptr<Transport> transport_;
  const uint32_t engine_;
  FrameReader reader_;

  std::mutex mutex_;
  std::string backlog_;     // guarded by mutex_
  size_t written_ = 0;      // bytes of backlog_ that are out; guarded by mutex_
  bool peer_gone_ = false;  // guarded by mutex_
  std::atomic<size_t> backlog_bytes_ = 0;
};

}  // namespace strata::wire
