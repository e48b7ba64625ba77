// How answers travel: failures, going clients, silence, restarts.
#include "strata/server/generation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "strata/server/testing/test_server.h"

namespace strata::server {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::RawClient;
using testing::Reply;
using testing::test_config;
using testing::TestServer;

constexpr const char* kPath = "/v1/completions";
constexpr const char* kWhole = "{\"prompt\":\"hi\"}";
constexpr const char* kStream = "{\"prompt\":\"hi\",\"stream\":true}";

const wire::Event kEnd = wire::Finished{wire::Reason::kStop, {2, 1, 0}, {}};

TEST(Generation, F048_AFailureBeforeTheFirstByteHasItsStatus) {
  TestServer server;
  struct Case {
    ErrorCode code;
    int status;
  };
  for (const Case& each :
       {Case{ErrorCode::kInternal, 500}, Case{ErrorCode::kInvalidArgument, 400},
        Case{ErrorCode::kDevice, 500}, Case{ErrorCode::kResourceExhausted, 503}}) {
    server.engine.set_script({wire::Progress{1, 2, 0}, wire::Failed{each.code, "why"}});
    for (const char* body : {kWhole, kStream}) {
      const Reply reply = server.post(kPath, body);
      EXPECT_EQ(reply.status, each.status);
      EXPECT_EQ(reply.header("content-type"), "application/json");
      EXPECT_THAT(reply.body, HasSubstr("why"));
      EXPECT_EQ(!reply.header("retry-after").empty(), each.status == 503);
    }
  }
}

TEST(Generation, WhatIsThrownOnTheWayEndsOneAnswerOnly) {
  TestServer server;
  server.engine.throw_at_submit();
  for (const char* body : {kWhole, kStream}) {
    const Reply reply = server.post(kPath, body);
    EXPECT_EQ(reply.status, 500);
    EXPECT_THAT(reply.body, HasSubstr("internal error"));
  }
  EXPECT_EQ(server.ask("GET", "/health").status, 200);
}

TEST(Generation, F048_AFailureInsideAStreamIsAnErrorEventAndTheEnd) {
  TestServer server;
  for (const int n : {1, 10}) {
    std::vector<wire::Event> script(static_cast<size_t>(n), wire::Tokens{{1}, "x"});
    script.emplace_back().emplace<wire::Failed>(
        wire::Failed{ErrorCode::kInternal, "the engine stopped"});
    server.engine.set_script(script);
    const Reply reply = server.post(kPath, kStream);
    EXPECT_EQ(reply.status, 200);
    const auto events = reply.events();
    ASSERT_EQ(events.size(), static_cast<size_t>(n) + 2);
    EXPECT_EQ(events.back(), "[DONE]");
    EXPECT_THAT(json::parse(events[events.size() - 2])["error"]["message"].get<std::string>(),
                HasSubstr("the engine stopped"));
    EXPECT_EQ(server.post(kPath, kWhole).status, 500);
  }
}

TEST(Generation, F046_ASilentStreamGetsCommentsAndNothingElse) {
  Config config = test_config();
  config.keepalive = milliseconds(60);
  TestServer server(config);
  RawClient client = server.client();
  client.send_request("POST", kPath, kStream);
  server.engine.wait_for_submit();
  server.engine.send(1, wire::Progress{1, 2, 0});
  ASSERT_TRUE(client.receive_until(": working\n\n"));
  client.input().clear();
  ASSERT_TRUE(client.receive_until(": working\n\n"));  // and another
  server.engine.send(1, wire::Failed{ErrorCode::kInternal, "late"});
  // The headers are out, so the failure comes as an event.
  ASSERT_TRUE(client.receive_until("[DONE]"));
  EXPECT_THAT(client.input(), HasSubstr("\"error\""));
}

TEST(Generation, ACancelledClientFreesItsSlot) {
  TestServer server;
  size_t n = 0;
  for (const char* body : {kWhole, kStream}) {
    for (const bool with_tokens : {false, true}) {
      RawClient client = server.client();
      client.send_request("POST", kPath, body);
      server.engine.wait_for_submit(++n);
      if (with_tokens) {
        server.engine.send_text(n, "x");
        if (body == kStream) {
          ASSERT_TRUE(client.receive_until("data: "));
        }
      }
      client.close();
      EXPECT_TRUE(server.engine.wait_for_cancel(n)) << body << with_tokens;
    }
  }
  EXPECT_EQ(server.ask("GET", "/health").status, 200);
}

TEST(Generation, RequestsSentAheadDoNotCountAsGoing) {
  TestServer server;
  RawClient client = server.client();
  client.send_request("POST", kPath, kWhole);
  client.send_request("GET", "/health");
  server.engine.wait_for_submit();
  server.engine.send_text(1, "ok");
  server.engine.send(1, kEnd);
  EXPECT_THAT(client.reply().body, HasSubstr("\"ok\""));
  EXPECT_EQ(client.reply().status, 200);
}

TEST(Generation, AClientThatDoesNotReadIsCutAndBlocksNobody) {
  Config config = test_config();
  config.max_unsent_bytes = 100'000;
  TestServer server(config);
  RawClient lazy = server.client();
  lazy.send_request("POST", kPath, kStream);
  server.engine.wait_for_submit(1);
  RawClient other = server.client();
  other.send_request("POST", kPath, kStream);
  server.engine.wait_for_submit(2);
  const std::string text(10'000, 'x');
  // The system's own buffers take some megabytes.
  for (int i = 0; i < 5000 && server.engine.send_text(1, text); ++i) {
    if (i % 50 == 0) {
      server.engine.send_text(2, "y");
      ASSERT_TRUE(other.receive());
    }
  }
  EXPECT_TRUE(server.engine.wait_for_cancel(1));
  server.engine.send(2, kEnd);
  EXPECT_TRUE(other.receive_until("[DONE]"));
}

// Some APIs begin a stream with the request once more, which may be longer than what a client that
// does not read may leave unsent.
TEST(Generation, ALongFirstEventDoesNotCutAClientThatReads) {
  Config config = test_config();
  config.max_unsent_bytes = 20'000;
  TestServer server(config);
  server.engine.answer_with({"a", "b"});
  const std::string description(200'000, 'd');
  const Reply reply = server.post(
      "/v1/responses", R"({"input":"hi","stream":true,"tools":[{"type":"function","name":"f",
      "description":")" + description +
                           R"("}],"tool_choice":"none"})");
  EXPECT_EQ(reply.status, 200);
  ASSERT_FALSE(reply.events().empty());
  EXPECT_THAT(reply.events().back(), HasSubstr("response.completed"));
}

TEST(Generation, AWholeAnswerIsMadeAgainAfterARestart) {
  TestServer server;
  RawClient client = server.client();
  client.send_request("POST", kPath, kWhole);
  server.engine.wait_for_submit();
  server.engine.send_text(1, "half \xE4");
  ASSERT_TRUE(server.engine.restart(1));
  server.engine.send_text(1, "all");
  server.engine.send(1, kEnd);
  EXPECT_EQ(json::parse(client.reply().body)["choices"][0]["text"], "all");
  // A stream cannot be taken back.
  client.send_request("POST", kPath, kStream);
  server.engine.wait_for_submit(2);
  EXPECT_FALSE(server.engine.restart(2));
}

TEST(Generation, AModelThatIsNotThereYetIsA503) {
  TestServer server;
  supervise::Status status;
  status.pulse.phase = "reading weights 40 %";
  server.engine.set_status(status);
  const Reply reply = server.post(kPath, kWhole);
  EXPECT_EQ(reply.status, 503);
  EXPECT_THAT(reply.body, HasSubstr("reading weights 40 %"));
  EXPECT_THAT(reply.body, HasSubstr("model_loading"));
  EXPECT_FALSE(reply.header("retry-after").empty());
  EXPECT_EQ(server.ask("GET", "/health").status, 503);
  EXPECT_EQ(server.post("/tokenize", "{\"content\":\"a\"}").status, 200);
}

TEST(Generation, OldClientsGetAStreamWithoutChunks) {
  TestServer server;
  server.engine.answer_with({"a", "b"});
  RawClient client = server.client();
  const std::string body = kStream;
  client.send("POST /v1/completions HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body);
  const Reply reply = client.reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("transfer-encoding"), "");
  EXPECT_EQ(reply.events().back(), "[DONE]");
  EXPECT_TRUE(client.closed_by_server());
}

TEST(Generation, F120_DrainLetsAnswersEndAndRefusesNewOnes) {
  Config config = test_config();
  config.drain_limit = std::chrono::seconds(10);
  TestServer server(config);
  RawClient running = server.client();
  running.send_request("POST", kPath, kStream);
  server.engine.wait_for_submit();
  server.engine.send_text(1, "a");
  ASSERT_TRUE(running.receive_until("\"a\""));
  RawClient idle = server.client();
  EXPECT_EQ(idle.ask("GET", "/health").status, 200);
  server.server.stop();
  EXPECT_TRUE(idle.closed_by_server());
  const Reply refused = server.post(kPath, kWhole);
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("connection"), "close");
  EXPECT_THAT(server.ask("GET", "/health").body, HasSubstr("stopping"));
  server.engine.send_text(1, "b");
  server.engine.send(1, kEnd);
  EXPECT_TRUE(running.receive_until("[DONE]"));
  EXPECT_EQ(running.input().find("\"error\""), std::string::npos);
  EXPECT_EQ(server.drain(), 0);
}

TEST(Generation, F120_WhatDoesNotEndInTimeEndsWithAnError) {
  TestServer server;
  RawClient stream = server.client(), whole = server.client();
  stream.send_request("POST", kPath, kStream);
  server.engine.wait_for_submit(1);
  server.engine.send_text(1, "a");
  ASSERT_TRUE(stream.receive_until("\"a\""));
  whole.send_request("POST", kPath, kWhole);
  server.engine.wait_for_submit(2);
  EXPECT_EQ(server.drain(), 0);
  EXPECT_TRUE(stream.receive_until("[DONE]"));
  EXPECT_THAT(stream.input(), HasSubstr("shutting down"));
  EXPECT_EQ(whole.reply().status, 503);
  EXPECT_TRUE(server.engine.wait_for_cancel(1));
  EXPECT_TRUE(server.engine.wait_for_cancel(2));
}

TEST(Generation, AnEngineThatWasNeverReadyEndsTheServerWithItsCode) {
  TestServer server;
  supervise::Status status;
  status.state = supervise::State::kFailed;
  status.reasons = {"left with code 65 (a damaged file)"};
  status.exit_code = 65;
  server.engine.set_status(status);
  EXPECT_EQ(server.wait(), 65);
}

}  // namespace
}  // namespace strata::server
