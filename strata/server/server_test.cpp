// The whole front: signals, and a supervisor with a real engine process behind the server.
#include "strata/server/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "strata/server/testing/test_server.h"
#include "strata/supervise/supervisor.h"

namespace strata::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RawClient;
using testing::Reply;
using testing::test_config;
using testing::TestServer;

constexpr const char* kPath = "/v1/completions";
constexpr const char* kWhole = "{\"prompt\":\"hi\"}";
constexpr const char* kStream = "{\"prompt\":\"hi\",\"stream\":true}";

// A server over an engine process that follows a script (supervise/scripted_engine_main.cpp).
class Front {
 public:
  explicit Front(const std::string& script)
      : server_(test_config()),
        engine_(supervise::process_launcher({STRATA_SCRIPTED_ENGINE, "--script", script}),
                settings()) {
    thread_ = std::thread([this] { exit_code_ = server_.run(frontend_, engine_); });
  }
  ~Front() { end(); }
  int end() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
    engine_.stop();
    return exit_code_;
  }
  int wait() {
    thread_.join();
    return end();
  }
  RawClient client() const { return RawClient(server_.port()); }
  Reply post(const std::string& body) const { return client().ask("POST", kPath, body); }
  bool ready() const {
    const auto deadline = std::chrono::steady_clock::now() + seconds(20);
    while (std::chrono::steady_clock::now() < deadline)
      if (client().ask("GET", "/health").status == 200) return true;
    return false;
  }

 private:
  static supervise::Settings settings() {
    supervise::Settings settings;
    settings.restart.first_delay = milliseconds(1);
    return settings;
  }
  testing::FakeFrontend frontend_;
  Server server_;
  supervise::Supervisor engine_;
  std::thread thread_;
  int exit_code_ = -1;
};

TEST(Server, AnswersThroughAnEngineProcess) {
  Front front("ok");
  ASSERT_TRUE(front.ready());
  EXPECT_THAT(front.post(kWhole).body, HasSubstr("\"one two\""));
  const Reply stream = front.post(kStream);
  EXPECT_EQ(stream.events().size(), 4u);
  EXPECT_EQ(front.end(), 0);
}

TEST(Server, F048_AKilledEngineLosesNoAnswerThatWasNotBegun) {
  Front front("abort,ok");
  ASSERT_TRUE(front.ready());
  const Reply reply = front.post(kStream);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.events().back(), "[DONE]");
  EXPECT_THAT(reply.body, HasSubstr("two"));
  // "half" had sent a token, but not to this client, who waits for the whole.
  Front other("half,ok");
  ASSERT_TRUE(other.ready());
  EXPECT_THAT(other.post(kWhole).body, HasSubstr("\"one two\""));
}

TEST(Server, F048_AStreamWhoseEngineIsKilledGoesOnInTheNext) {
  Front front("half,ok");
  ASSERT_TRUE(front.ready());
  const Reply reply = front.post(kStream);
  EXPECT_EQ(reply.status, 200);
  const auto events = reply.events();
  ASSERT_GE(events.size(), 3u);
  EXPECT_THAT(events[0], HasSubstr("one "));
  EXPECT_THAT(events[1], HasSubstr("two"));
  for (const auto& event : events) EXPECT_THAT(event, Not(HasSubstr("\"error\"")));
  EXPECT_EQ(events.back(), "[DONE]");
}

TEST(Server, F048_AStreamThatKillsTwoEnginesEndsWithAnErrorEvent) {
  Front front("half,half,ok");
  ASSERT_TRUE(front.ready());
  const Reply reply = front.post(kStream);
  EXPECT_EQ(reply.status, 200);
  const auto events = reply.events();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_THAT(events[0], HasSubstr("one "));
  EXPECT_THAT(events[2], HasSubstr("\"error\""));
  EXPECT_THAT(events[2], HasSubstr("signal 9"));
  EXPECT_EQ(events[3], "[DONE]");
  EXPECT_THAT(front.post(kWhole).body, HasSubstr("\"one two\""));
}

TEST(Server, AnEngineThatCannotStartEndsTheServerWithItsCode) {
  Front front("exit:65");
  EXPECT_EQ(front.wait(), 65);
}

TEST(Server, F120_ASignalDrainsAndLeavesWithZero) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    TestServer server;
    server.server.catch_signals();
    RawClient idle = server.client();
    EXPECT_EQ(idle.ask("GET", "/health").status, 200);
    std::raise(number);
    EXPECT_EQ(server.wait(), 0) << number;
  }
}

TEST(Server, F120_ASignalBeforeTheModelIsThereIsKept) {
  testing::FakeEngine engine;
  testing::FakeFrontend frontend;
  Server server(test_config());
  server.catch_signals();
  std::raise(SIGTERM);
  EXPECT_EQ(server.run(frontend, engine), 0);
}

// What a worker still does for a client that has gone must find everything that it uses.
TEST(Server, AJobThatOutlivesTheDrainIsWaitedFor) {
  TestServer server;
  std::promise<void> begun, gate;
  const std::shared_future<void> open = gate.get_future().share();
  server.frontend.on_encode = [&, first = std::make_shared<std::atomic<bool>>(true)](size_t) {
    if (!first->exchange(false)) return;
    begun.set_value();
    open.wait();
  };
  RawClient client = server.client();
  client.send_request("POST", kPath, kWhole);
  begun.get_future().wait();
  client.close();
  server.server.stop();
  // Longer than the drain and what is left for the last bytes; the server is still there.
  const auto until = std::chrono::steady_clock::now() + milliseconds(900);
  while (std::chrono::steady_clock::now() < until)
    ASSERT_EQ(server.ask("GET", "/health").status, 503);
  gate.set_value();
  EXPECT_EQ(server.wait(), 0);
}

void serve_with_a_job_that_never_ends() {
  TestServer server;
  std::promise<void> begun;
  server.frontend.on_encode = [&](size_t) {
    begun.set_value();
    std::promise<void>().get_future().wait();
  };
  RawClient client = server.client();
  client.send_request("POST", kPath, kWhole);
  begun.get_future().wait();
  server.drain();
}

TEST(Server, AJobThatNeverEndsDoesNotKeepTheProcess) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(serve_with_a_job_that_never_ends(), ::testing::ExitedWithCode(0), "");
}

void serve_and_be_impatient() {
  Config config = test_config();
  config.drain_limit = seconds(100);
  TestServer server(config);
  server.server.catch_signals();
  RawClient client = server.client();
  client.send_request("POST", kPath, kWhole);
  server.engine.wait_for_submit();
  std::raise(SIGTERM);
  while (client.input().empty()) {
    // Once draining, a second signal must not be kept waiting by the request that runs.
    if (server.ask("GET", "/health").status == 503) std::raise(SIGINT);
  }
}

TEST(Server, F120_TheSecondSignalExitsAtOnce) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(serve_and_be_impatient(), ::testing::ExitedWithCode(128 + SIGINT), "");
}

}  // namespace
}  // namespace strata::server
