#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "strata/base/os/unix_socket.h"

namespace strata::wire {

// A stream of bytes to the other process and back. No call but wait() blocks.
class Transport {
 public:
  virtual ~Transport() = default;
  // Any thread, one at a time. Bytes taken; 0 if the peer's buffer is full, nullopt if it is gone.
  virtual std::optional<size_t> send_some(std::string_view bytes) = 0;
  // One thread, as wait().
  virtual os::Received receive_some(char* to, size_t size) = 0;
  // Until there is something to receive (or to send, if `or_writable`), a wake(), or `limit`.
  virtual void wait(bool or_writable, std::chrono::milliseconds limit) = 0;
  // Any thread.
  virtual void wake() = 0;
};

// Over one end of a connected stream socket.
std::unique_ptr<Transport> socket_transport(os::Descriptor socket);

}  // namespace strata::wire
