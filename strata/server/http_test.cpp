// The transport, byte by byte, through a real server on loopback.
#include "strata/server/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/server/testing/test_server.h"

namespace strata::server {
namespace {

using std::chrono::milliseconds;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing::RawClient;
using testing::Reply;
using testing::test_config;
using testing::TestServer;

constexpr const char* kTokenize = "{\"content\":\"ab\"}";

std::string head(std::string_view more) {
  return "POST /tokenize HTTP/1.1\r\nHost: localhost\r\n" + std::string(more) + "\r\n";
}

// What the server says to these bytes on a new connection.
Reply say(const TestServer& server, std::string_view bytes) {
  RawClient client(server.port());
  client.send(bytes);
  return client.reply();
}

TEST(Http, F045_BodiesInAllFormsGiveTheSameAnswer) {
  TestServer server;
  EXPECT_THAT(say(server, head("Content-Length: 16\r\n") + kTokenize).body, HasSubstr("[97,98]"));
  EXPECT_THAT(say(server, head("Transfer-Encoding: chunked\r\n") +
                              "5\r\n{\"con\r\nb;x=y\r\ntent\":\"ab\"}\r\n0\r\nTrailer: 1\r\n\r\n")
                  .body,
              HasSubstr("[97,98]"));
  const std::string lower_case =
      "POST /tokenize HTTP/1.1\r\nhost: localhost\r\ncontent-length: 16\r\n\r\n";
  EXPECT_EQ(say(server, lower_case + kTokenize).status, 200);
}

TEST(Http, F045_OneByteWrites) {
  TestServer server;
  RawClient client(server.port());
  for (const char c : head("Content-Length: 16\r\n") + kTokenize) client.send({&c, 1});
  EXPECT_EQ(client.reply().status, 200);
}

TEST(Http, F045_ContinueIsSentBeforeTheBodyAndOnlyIfItIsWanted) {
  TestServer server;
  RawClient client(server.port());
  client.send(head("Expect: 100-continue\r\nContent-Length: 16\r\n"));
  EXPECT_EQ(client.reply(true).status, 100);
  client.send(kTokenize);
  EXPECT_EQ(client.reply().status, 200);
  EXPECT_EQ(say(server, head("Expect: 100-continue\r\nContent-Length: 99999999999\r\n")).status,
            413);
  EXPECT_EQ(say(server, head("Expect: something\r\nContent-Length: 16\r\n")).status, 417);
}

TEST(Http, OneEmptyLineInFrontOfARequestIsIgnored) {
  TestServer server;
  const std::string get = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
  EXPECT_EQ(say(server, "\r\n" + get).status, 200);
  EXPECT_EQ(say(server, "\r\n\r\n" + get).status, 400);
  EXPECT_EQ(say(server, "\n" + get).status, 400);
  // Behind a body, as old clients do; byte by byte.
  RawClient client(server.port());
  for (int i = 0; i < 2; ++i) {
    for (const char c : head("Content-Length: 16\r\n") + kTokenize + "\r\n") client.send({&c, 1});
    EXPECT_EQ(client.reply().status, 200);
  }
  EXPECT_EQ(client.ask("GET", "/health").status, 200);
}

TEST(Http, AnEmptyHostIsNoHost) {
  TestServer server;
  for (const char* host : {"Host:\r\n", "Host: \r\n", "Host:\t\r\n"})
    EXPECT_EQ(say(server, "GET /health HTTP/1.1\r\n" + std::string(host) + "\r\n").status, 400);
}

// A transport with a handler of the test's own.
class HandledServer {
 public:
  explicit HandledServer(std::function<void(std::shared_ptr<Exchange>)> handle)
      : config_(test_config()), http_(config_) {
    thread_ = std::thread([this, handle = std::move(handle)] { http_.run({.handle = handle}); });
  }
  ~HandledServer() {
    http_.post([this] { http_.stop(); });
    thread_.join();
  }
  RawClient client() const { return RawClient(http_.port()); }

 private:
  Config config_;
  HttpServer http_;
  std::thread thread_;
};

TEST(Http, WhatAHandlerThrowsIsA500AndTheServerGoesOn) {
  const HandledServer server([](const std::shared_ptr<Exchange>& exchange) {
    const std::string& path = exchange->request().path;
    if (path == "/throws") throw std::runtime_error("secret detail");
    if (path == "/posts") return exchange->post([] { throw std::bad_alloc(); });
    if (path == "/streams") {
      exchange->begin_stream({});
      exchange->write("one");
      return exchange->post([] { throw std::bad_alloc(); });
    }
    exchange->reply({200, {}, "fine"});
  });
  for (const char* path : {"/throws", "/posts"}) {
    const Reply reply = server.client().ask("GET", path);
    EXPECT_EQ(reply.status, 500) << path;
    EXPECT_THAT(reply.body, HasSubstr("internal error"));
    EXPECT_EQ(reply.body.find("secret"), std::string::npos);
  }
  RawClient client = server.client();
  client.send_request("GET", "/streams");
  EXPECT_TRUE(client.receive_until("one"));
  EXPECT_TRUE(client.closed_by_server());
  EXPECT_EQ(server.client().ask("GET", "/").body, "fine");
}

TEST(Http, F045_ContradictoryLengthsAreRefusedAndTheConnectionEnds) {
  TestServer server;
  for (const char* headers :
       {"Content-Length: 16\r\nContent-Length: 17\r\n",
        "Content-Length: 16\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 16\r\n", "Content-Length: -1\r\n",
        "Content-Length: 0x10\r\n", "Content-Length: 16, 16\r\n", "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: chunked, gzip\r\n", "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Host: localhost\r\n",
        "Bad Header: 1\r\n", "Content-Length: 18446744073709551616\r\n"}) {
    RawClient client(server.port());
    client.send(head(headers) + kTokenize);
    EXPECT_THAT(client.reply().status, AnyOf(400, 413)) << headers;
    EXPECT_TRUE(client.closed_by_server()) << headers;
    // Nothing of the body was taken for a request.
    EXPECT_EQ(client.input(), "") << headers;
  }
}

TEST(Http, F045_TooShortALengthNeverMakesTheRestARequest) {
  TestServer server;
  RawClient client(server.port());
  client.send(head("Content-Length: 2\r\n") + "{}GARBAGE\r\n\r\n");
  EXPECT_EQ(client.reply().status, 400);
  EXPECT_EQ(client.reply().status, 400);
  EXPECT_TRUE(client.closed_by_server());
}

TEST(Http, F045_TooLongALengthEndsInTime) {
  Config config = test_config();
  config.body_timeout = milliseconds(50);
  TestServer server(config);
  EXPECT_EQ(say(server, head("Content-Length: 17\r\n") + kTokenize).status, 408);
  RawClient leaver(server.port());
  leaver.send(head("Content-Length: 17\r\n") + kTokenize);
  leaver.shutdown_send();
  EXPECT_EQ(leaver.reply().status, 400);
}

TEST(Http, F045_PipelinedRequestsAreAnsweredInOrderOnOneConnection) {
  TestServer server;
  RawClient client(server.port());
  std::string requests;
  for (int i = 0; i < 50; ++i)
    requests += head(format("Content-Length: {}\r\n", 14 + std::to_string(i).size())) +
                format("{{\"content\":\"{}\"}}", i);
  client.send(requests);
  for (int i = 0; i < 50; ++i) {
    const Reply reply = client.reply();
    EXPECT_EQ(reply.status, 200);
    EXPECT_THAT(reply.body, HasSubstr(i < 10 ? format("[{}]", 48 + i)
                                             : format("[{},{}]", 48 + i / 10, 48 + i % 10)));
  }
}

// While the first two wait for their answers the server reads on.
TEST(Http, F045_ARequestBehindPipelinedOnesIsItself) {
  TestServer server;
  RawClient client(server.port());
  client.send_request("POST", "/v1/completions", "{\"prompt\":\"x\"}");
  client.send_request("POST", "/tokenize", "{\"content\":\"ab\"}");
  server.engine.wait_for_submit();
  server.engine.send(1, wire::Finished{});
  EXPECT_EQ(client.reply().status, 200);
  EXPECT_THAT(client.reply().body, HasSubstr("[97,98]"));
  EXPECT_THAT(client.ask("POST", "/tokenize", "{\"content\":\"cd\"}").body, HasSubstr("[99,100]"));
}

TEST(Http, F045_ConnectionsAreKeptAsTheClientAsks) {
  TestServer server;
  RawClient kept(server.port());
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(kept.ask("GET", "/health").header("connection"), "keep-alive");
  EXPECT_EQ(kept.ask("GET", "/health", "", "Connection: close\r\n").status, 200);
  EXPECT_TRUE(kept.closed_by_server());
  RawClient old(server.port());
  old.send("GET /health HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.reply().status, 200);
  EXPECT_TRUE(old.closed_by_server());
}

TEST(Http, F045_HeadAndOptions) {
  TestServer server;
  RawClient client(server.port());
  const Reply get = client.ask("GET", "/v1/models");
  const Reply head_reply = client.ask("HEAD", "/v1/models");
  EXPECT_EQ(head_reply.status, 200);
  EXPECT_EQ(head_reply.header("content-length"), get.header("content-length"));
  const Reply options = client.ask("OPTIONS", "/v1/chat/completions");
  EXPECT_EQ(options.status, 204);
  EXPECT_THAT(options.header("allow"), HasSubstr("POST"));
  EXPECT_EQ(client.ask("GET", "/health").status, 200);
}

TEST(Http, F124_HeadersOfCommonClients) {
  TestServer server;
  EXPECT_EQ(server
                .ask("GET", "/health", "",
                     "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                     "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n")
                .status,
            200);
  EXPECT_EQ(server.ask("GET", "/health", "", "Connection: keep-alive, Upgrade\r\n").status, 200);
  EXPECT_EQ(
      server.ask("GET", "/health", "", "User-Agent: " + std::string(8000, 'a') + "\r\n").status,
      200);
  EXPECT_EQ(
      server.ask("GET", "/health", "", "User-Agent: " + std::string(40'000, 'a') + "\r\n").status,
      431);
  EXPECT_EQ(server.ask("GET", "/health", "", "Cookie: a=b; c=d\r\n").status, 200);
  std::string many;
  for (int i = 0; i < 100; ++i) many += format("X-Header-{}: value\r\n", i);
  EXPECT_EQ(server.ask("GET", "/health", "", many).status, 200);
  EXPECT_EQ(server.ask("POST", "/tokenize", kTokenize, "Content-Encoding: gzip\r\n").status, 415);
  EXPECT_EQ(say(server, "GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\n\r\n").status,
            200);
  EXPECT_EQ(say(server, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").status, 400);
  EXPECT_EQ(say(server, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 tls\r\n\r\n").status, 400);
  EXPECT_EQ(say(server, "GET /health HTTP/1.1\r\n\r\n").status, 400);
  EXPECT_EQ(say(server, "CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 400);
}

TEST(Http, F141_LimitsOfSizeAreKeptWithoutReading) {
  Config config = test_config();
  config.max_body_bytes = 1000;
  TestServer server(config);
  EXPECT_EQ(say(server, head("Content-Length: 10737418240\r\n")).status, 413);
  EXPECT_EQ(say(server, head("Content-Length: 2000\r\n") + std::string(2000, ' ')).status, 413);
  EXPECT_EQ(say(server, head("Transfer-Encoding: chunked\r\n") + "7d0\r\n" +
                            std::string(2000, ' ') + "\r\n0\r\n\r\n")
                .status,
            413);
  EXPECT_EQ(server.ask("GET", "/" + std::string(50'000, 'a')).status, 431);
  EXPECT_EQ(server.ask("GET", "/health").status, 200);
}

TEST(Http, F141_EndlessChunkLinesAndTrailersAreRefused) {
  TestServer server;
  const std::string chunked = head("Transfer-Encoding: chunked\r\n");
  const std::string much(300'000, 'a');
  std::string many_extensions, many_trailers;
  for (int i = 0; i < 100; ++i) many_extensions += "1;" + std::string(1000, 'a') + "\r\n \r\n";
  for (int i = 0; i < 100; ++i)
    many_trailers += format("T{}: ", i) + std::string(1000, 'a') + "\r\n";
  for (const std::string& body :
       {"1;" + much, "0\r\nTrailer: " + much, "0\r\n" + many_trailers, many_extensions,
        // Behind a body of some size, too.
        "20000\r\n" + std::string(0x20000, ' ') + "\r\n0\r\nTrailer: " + much}) {
    RawClient client(server.port());
    client.send(chunked + body);
    EXPECT_EQ(client.reply().status, 400) << body.substr(0, 20);
    EXPECT_TRUE(client.closed_by_server()) << body.substr(0, 20);
  }
  // Small chunks with small extensions are no crime.
  std::string text;
  for (const char c : std::string(kTokenize)) text += format("1;a=b\r\n{}\r\n", c);
  EXPECT_EQ(say(server, chunked + text + "0\r\nA: b\r\n\r\n").status, 200);
}

TEST(Http, F141_WhoIsRefusedIsNotListenedToForLong) {
  Config config = test_config();
  config.max_body_bytes = 1000;
  TestServer server(config);
  RawClient client(server.port());
  client.send(head("Transfer-Encoding: chunked\r\n") + "7d0\r\n");
  EXPECT_EQ(client.reply().status, 413);
  EXPECT_LT(client.send_repeatedly(std::string(1 << 20, ' '), 256 << 20), size_t{64} << 20);
}

TEST(Http, F141_AllBodiesTogetherHaveALimit) {
  Config config = test_config();
  config.max_bodies_bytes = 1000;
  TestServer server(config);
  RawClient first(server.port()), second(server.port());
  first.send(head("Content-Length: 900\r\n") + std::string(800, ' '));
  second.send(head("Content-Length: 900\r\n") + std::string(800, ' '));
  // One of the two had to go; the other goes on.
  const bool second_refused = second.receive_until("503");
  EXPECT_TRUE(second_refused || first.receive_until("503"));
  RawClient& rest = second_refused ? first : second;
  rest.send(std::string(84, ' ') + kTokenize);
  EXPECT_EQ(rest.reply().status, 200);
  EXPECT_EQ(server.post("/tokenize", kTokenize).status, 200);
}

TEST(Http, F141_SlowHeadersEndAndIdleConnectionsGiveWay) {
  Config config = test_config();
  config.header_timeout = milliseconds(50);
  config.max_connections = 8;
  TestServer server(config);
  RawClient slow(server.port());
  slow.send("GET /hea");
  EXPECT_EQ(slow.reply().status, 408);
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < 200; ++i) idle.push_back(std::make_unique<RawClient>(server.port()));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(server.ask("GET", "/health").status, 200);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

TEST(Http, F141_TooManyBusyConnectionsGetA503) {
  Config config = test_config();
  config.max_connections = 2;
  TestServer server(config);
  RawClient a(server.port()), b(server.port());
  const char* body = "{\"prompt\":\"x\"}";
  a.send_request("POST", "/v1/completions", body);
  b.send_request("POST", "/v1/completions", body);
  server.engine.wait_for_submit(2);
  EXPECT_EQ(server.ask("GET", "/health").status, 503);
}

TEST(Http, IdleConnectionsAreClosedInTheEnd) {
  Config config = test_config();
  config.idle_timeout = milliseconds(50);
  TestServer server(config);
  RawClient client(server.port());
  EXPECT_TRUE(client.closed_by_server());
  EXPECT_EQ(client.input(), "");
}

TEST(Http, F119_PortsAndHosts) {
  Config config = test_config();
  Server first(config);
  EXPECT_GT(first.port(), 0);
  EXPECT_EQ(first.url(), format("http://127.0.0.1:{}", first.port()));
  config.port = first.port();
  try {
    Server second(config);
    FAIL() << "bound twice";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kIo);
    EXPECT_THAT(e.what(), HasSubstr("in use"));
    EXPECT_THAT(e.what(), HasSubstr(std::to_string(first.port())));
  }
  config.port = 0;
  config.api_keys = {"k"};
  config.host = "192.0.2.1";  // reserved for documents, nobody's
  EXPECT_THROW(Server{config}, Error);
  config.host = "no such host";
  EXPECT_THROW(Server{config}, Error);
}

TEST(Http, F119_AFreedPortCanBeHadAtOnce) {
  Config config = test_config();
  {
    TestServer server(config);
    config.port = server.port();
    // A connection the server closes first leaves the port in TIME_WAIT.
    EXPECT_EQ(server.ask("GET", "/health", "", "Connection: close\r\n").status, 200);
  }
  TestServer again(config);
  EXPECT_EQ(again.ask("GET", "/health").status, 200);
}

}  // namespace
}  // namespace strata::server
