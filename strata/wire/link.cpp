#include "strata/wire/link.h"

#include <array>
#include <utility>

namespace strata::wire {

Link::Link(std::unique_ptr<Transport> transport, uint32_t engine)
    : transport_(std::move(transport)), engine_(engine) {}

void Link::send(std::span<const Addressed> events) {
  std::string bytes;
  for (const Addressed& each : events) encode(engine_, each.request, each.event, bytes);
  push(bytes);
}

void Link::send(RequestId request, const Event& event) {
  std::string bytes;
  encode(engine_, request, event, bytes);
  push(bytes);
}

void Link::send(RequestId request, const Command& command) {
  std::string bytes;
  encode(engine_, request, command, bytes);
  push(bytes);
}

void Link::push(const std::string& bytes) {
  if (bytes.empty()) return;
  bool left = false;
  {
    const std::lock_guard lock(mutex_);
    if (peer_gone_) return;
    backlog_.append(bytes);
    flush_locked();
    left = !backlog_.empty();
  }
  // The turning thread may be waiting for input only.
  if (left) transport_->wake();
}

void Link::flush_locked() {
  while (written_ < backlog_.size() && !peer_gone_) {
    const auto sent = transport_->send_some(std::string_view(backlog_).substr(written_));
    if (!sent) peer_gone_ = true;
    if (!sent || *sent == 0) break;
    written_ += *sent;
  }
  // Moving the rest down at each write would cost its square.
  if (peer_gone_ || written_ == backlog_.size()) {
    backlog_.clear();
    written_ = 0;
  } else if (written_ > backlog_.size() / 2) {
    backlog_.erase(0, written_);
    written_ = 0;
  }
  backlog_bytes_.store(backlog_.size() - written_, std::memory_order_relaxed);
}

bool Link::turn(std::chrono::milliseconds limit, const OnFrame& on_frame) {
  bool pending = false;
  {
    const std::lock_guard lock(mutex_);
    pending = !backlog_.empty();
  }
  transport_->wait(pending, limit);
  {
    const std::lock_guard lock(mutex_);
    flush_locked();
  }

  std::array<char, 64 * 1024> buffer;
  bool closed = false;
  // Bounded, so that a peer that never pauses does not keep the caller from its other work.
  for (int i = 0; i < 16 && !closed; ++i) {
    const os::Received got = transport_->receive_some(buffer.data(), buffer.size());
    closed = got.closed;
    if (got.bytes == 0) break;
    reader_.append({buffer.data(), got.bytes});
  }
  std::string_view payload;
  while (const auto frame = reader_.next(payload)) {
    if (frame->engine == engine_) on_frame(*frame, payload);
  }
  if (closed) {
    const std::lock_guard lock(mutex_);
    peer_gone_ = true;
  }
  return !closed;
}

}  // namespace strata::wire
