#include <utility>

#include "strata/wire/transport.h"

namespace strata::wire {
namespace {

class SocketTransport final : public Transport {
 public:
  explicit SocketTransport(os::Descriptor socket) : socket_(std::move(socket)) {}

  std::optional<size_t> send_some(std::string_view bytes) override {
    return os::send_some(socket_, bytes);
  }
  os::Received receive_some(char* to, size_t size) override {
    return os::receive_some(socket_, to, size);
  }
  void wait(bool or_writable, std::chrono::milliseconds limit) override {
    os::wait(socket_, or_writable, waker_, limit);
    waker_.clear();
  }
  void wake() override { waker_.wake(); }

 private:
  os::Descriptor socket_;
  os::Waker waker_;
};

}  // namespace

std::unique_ptr<Transport> socket_transport(os::Descriptor socket) {
  return std::make_unique<SocketTransport>(std::move(socket));
}

}  // namespace strata::wire
