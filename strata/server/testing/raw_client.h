#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace strata::server::testing {

struct Reply {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // chunks put together
  std::string header(const std::string& name) const;
  // The data of the events of a stream.
  std::vector<std::string> events() const;
};

// A TCP client that sends exactly the bytes it is given and understands just enough HTTP to take an
// answer apart; none of it is code of the server. Every wait ends after ten seconds.
class RawClient {
 public:
  explicit RawClient(uint16_t port);
  ~RawClient();

  void send(std::string_view bytes);
  // The same again and again, at most `limit` bytes in all: how many the other side's system took.
  size_t send_repeatedly(std::string_view bytes, size_t limit);
  // Waits for bytes that are not there yet. False: the server has closed, or time is up.
  bool receive();
  // All that has come and was not taken yet.
  std::string& input() { return input_; }
  // Until `text` has come; what was read stays in input().
  bool receive_until(std::string_view text);
  // The next answer; of the form "HTTP/1.1 100" only the head. Status 0: none came.
  Reply reply(bool head_only = false);
  bool closed_by_server();
  void shutdown_send();
  void close();

  // A request with Host, and with Content-Length if there is a body; sends it and takes the answer.
  Reply ask(std::string_view method, std::string_view path, std::string_view body = "",
            std::string_view more_headers = "");
  void send_request(std::string_view method, std::string_view path, std::string_view body = "",
                    std::string_view more_headers = "");

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::string input_;
  bool closed_ = false;
};

}  // namespace strata::server::testing
