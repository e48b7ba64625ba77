#include "strata/server/testing/raw_client.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>

#include "strata/base/format.h"

namespace strata::server::testing {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace

std::string Reply::header(const std::string& name) const {
  const auto it = headers.find(name);
  return it == headers.end() ? "" : it->second;
}

std::vector<std::string> Reply::events() const {
  std::vector<std::string> result;
  size_t at = 0;
  while ((at = body.find("data: ", at)) != std::string::npos) {
    const size_t end = body.find("\n\n", at);
    result.push_back(body.substr(at + 6, end - at - 6));
    at = end;
  }
  return result;
}

struct RawClient::Impl {
  asio::io_context io;
  tcp::socket socket{io};
};

RawClient::RawClient(uint16_t port) : impl_(std::make_unique<Impl>()) {
  boost::system::error_code error;
  impl_->socket.connect({asio::ip::address_v4::loopback(), port}, error);
  closed_ = static_cast<bool>(error);
}

RawClient::~RawClient() = default;

void RawClient::send(std::string_view bytes) {
  boost::system::error_code ignored;  // the server may have closed: the answer tells
  asio::write(impl_->socket, asio::buffer(bytes.data(), bytes.size()), ignored);
}

size_t RawClient::send_repeatedly(std::string_view bytes, size_t limit) {
  boost::system::error_code error;
  size_t sent = 0;
  while (!error && sent < limit)
    sent += asio::write(impl_->socket, asio::buffer(bytes.data(), bytes.size()), error);
  return sent;
}

bool RawClient::receive() {
  if (closed_) return false;
  std::array<char, 65536> buffer;
  bool done = false;
  boost::system::error_code result;
  size_t got = 0;
  impl_->socket.async_read_some(asio::buffer(buffer),
                                [&](boost::system::error_code error, size_t n) {
                                  done = true;
                                  result = error;
                                  got = n;
                                });
  impl_->io.restart();
  impl_->io.run_for(std::chrono::seconds(10));
  if (!done) {
    impl_->socket.cancel();
    impl_->io.restart();
    impl_->io.run();
    return false;
  }
  if (result) closed_ = true;
  input_.append(buffer.data(), got);
  return got > 0;
}

bool RawClient::receive_until(std::string_view text) {
  while (input_.find(text) == std::string::npos)
    if (!receive()) return false;
  return true;
}

Reply RawClient::reply(bool head_only) {
  Reply reply;
  if (!receive_until("\r\n\r\n")) return reply;
  const size_t head_end = input_.find("\r\n\r\n");
  const std::string head = input_.substr(0, head_end + 2);
  input_.erase(0, head_end + 4);
  reply.status = std::atoi(head.c_str() + head.find(' '));
  for (size_t at = head.find("\r\n") + 2; at < head.size();) {
    const size_t end = head.find("\r\n", at);
    const size_t colon = head.find(": ", at);
    reply.headers[lower(head.substr(at, colon - at))] = head.substr(colon + 2, end - colon - 2);
    at = end + 2;
  }
  if (head_only || reply.status == 100 || reply.status == 204) return reply;
  if (reply.headers.contains("content-length")) {
    const size_t size = std::strtoul(reply.header("content-length").c_str(), nullptr, 10);
    while (input_.size() < size && receive()) {
    }
    reply.body = input_.substr(0, size);
    input_.erase(0, size);
  } else if (reply.header("transfer-encoding") == "chunked") {
    size_t size = 1;
    while (size > 0 && receive_until("\r\n")) {
      size = std::strtoul(input_.c_str(), nullptr, 16);
      const size_t begin = input_.find("\r\n") + 2;
      while (input_.size() < begin + size + 2 && receive()) {
      }
      reply.body += input_.substr(begin, size);
      input_.erase(0, begin + size + 2);
    }
  } else {
    while (receive()) {
    }
    reply.body = std::move(input_);
    input_.clear();
  }
  return reply;
}

bool RawClient::closed_by_server() {
  while (receive()) {
  }
  return closed_;
}

void RawClient::shutdown_send() {
  boost::system::error_code ignored;
  impl_->socket.shutdown(tcp::socket::shutdown_send, ignored);
}

void RawClient::close() {
  boost::system::error_code ignored;
  impl_->socket.close(ignored);
  closed_ = true;
}

void RawClient::send_request(std::string_view method, std::string_view path, std::string_view body,
                             std::string_view more_headers) {
  std::string text = format("{} {} HTTP/1.1\r\nHost: localhost\r\n{}", method, path, more_headers);
  if (!body.empty() || method == "POST") text += format("Content-Length: {}\r\n", body.size());
  send(text + "\r\n" + std::string(body));
}

Reply RawClient::ask(std::string_view method, std::string_view path, std::string_view body,
                     std::string_view more_headers) {
  send_request(method, path, body, more_headers);
  return reply(method == "HEAD");
}

}  // namespace strata::server::testing
