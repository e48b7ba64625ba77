#include "strata/base/os/unix_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::os {

std::pair<Descriptor, Descriptor> socket_pair() {
  std::array<int, 2> fds{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds.data()) != 0)
    throw Error(ErrorCode::kIo, format("cannot make a socket pair: {}", describe(errno)));
  return {Descriptor(fds[0]), Descriptor(fds[1])};
}

Descriptor adopt_socket(int fd) {
  int type = 0;
  socklen_t size = sizeof(type);
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM)
    throw Error(ErrorCode::kInvalidArgument, format("descriptor {} is not a stream socket", fd));
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
    throw Error(ErrorCode::kIo, format("cannot set up descriptor {}: {}", fd, describe(errno)));
  return Descriptor(fd);
}

std::optional<size_t> send_some(const Descriptor& socket, std::string_view bytes) {
  while (true) {
    const ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) return static_cast<size_t>(sent);
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) return 0;
    return std::nullopt;
  }
}

Received receive_some(const Descriptor& socket, char* to, size_t size) {
  while (true) {
    const ssize_t got = ::recv(socket.get(), to, size, 0);
    if (got > 0) return {static_cast<size_t>(got), false};
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {0, false};
    return {0, true};
  }
}

Waker::Waker() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!descriptor_)
    throw Error(ErrorCode::kIo, format("cannot make an event descriptor: {}", describe(errno)));
}

void Waker::wake() const {
  const uint64_t one = 1;
  // Can only fail when the counter is full, and then the waiter is awake already.
  [[maybe_unused]] const ssize_t n = ::write(descriptor_.get(), &one, sizeof(one));
}

void Waker::clear() const {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = ::read(descriptor_.get(), &count, sizeof(count));
}

void wait(const Descriptor& socket, bool or_writable, const Waker& waker,
          std::chrono::milliseconds limit) {
  std::array<pollfd, 2> fds{};
  fds[0] = {socket.get(), static_cast<short>(POLLIN | (or_writable ? POLLOUT : 0)), 0};
  fds[1] = {waker.descriptor().get(), POLLIN, 0};
  const auto ms = std::clamp<int64_t>(limit.count(), 0, 3'600'000);
  // An interrupted wait returns early, which callers must expect anyway.
  ::poll(fds.data(), fds.size(), static_cast<int>(ms));
}

}  // namespace strata::os
