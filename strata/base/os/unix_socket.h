#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "strata/base/os/descriptor.h"

namespace strata::os {

// Two connected stream sockets; neither blocks, neither is inherited by a started program.
// Errors: kIo.
std::pair<Descriptor, Descriptor> socket_pair();

// Takes over a socket that the parent process left open under this number: makes it non-blocking
// and not inherited. Errors: kInvalidArgument if it is no open socket.
Descriptor adopt_socket(int fd);

// Bytes that went out now; 0 if the peer's buffer is full, nullopt if the peer is gone.
std::optional<size_t> send_some(const Descriptor& socket, std::string_view bytes);

struct Received {
  size_t bytes = 0;
  bool closed = false;  // nothing will come any more
};
// Takes what has come, at most `size` bytes; 0 bytes and not closed: nothing now.
Received receive_some(const Descriptor& socket, char* to, size_t size);

// Lets any thread end another one's wait(). Errors of the constructor: kIo.
class Waker {
 public:
  Waker();
  void wake() const;
  void clear() const;
  const Descriptor& descriptor() const { return descriptor_; }

 private:
  Descriptor descriptor_;
};

// Returns when the socket can be read (or is closed), when it can be written if `or_writable`, when
// `waker` is woken, or after `limit`.
void wait(const Descriptor& socket, bool or_writable, const Waker& waker,
          std::chrono::milliseconds limit);

}  // namespace strata::os
