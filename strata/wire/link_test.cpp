#include "strata/wire/link.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/wire/engine_end.h"

namespace strata::wire {
namespace {

using std::chrono::milliseconds;

struct Pair {
  explicit Pair(uint32_t front_engine = 1, uint32_t engine_engine = 1) {
    auto [a, b] = os::socket_pair();
    front = std::make_unique<Link>(socket_transport(std::move(a)), front_engine);
    engine = std::make_unique<Link>(socket_transport(std::move(b)), engine_engine);
  }
  std::unique_ptr<Link> front, engine;
};

TEST(Link, OneWriteCarriesTheEventsOfAStep) {
  Pair pair;
  const std::vector<Addressed> sent = {
      {1, Tokens{{5}, "a"}}, {2, Progress{1, 2, 0}}, {1, Finished{}}};
  pair.engine->send(sent);
  std::vector<Addressed> got;
  EXPECT_TRUE(pair.front->turn(milliseconds(1000), [&](const Frame& f, std::string_view p) {
    got.push_back({f.request, decode_event(f, p)});
  }));
  EXPECT_TRUE(got == sent);
}

TEST(Link, AFullSocketNeverBlocksTheSender) {
  Pair pair;
  const std::string text(100'000, 'x');
  for (int i = 0; i < 100; ++i) pair.engine->send(1, Event(Tokens{{i}, text}));
  EXPECT_GT(pair.engine->backlog_bytes(), 5'000'000u);
  int next = 0;
  while (next < 100) {
    ASSERT_TRUE(pair.engine->turn(milliseconds(0), [](const Frame&, std::string_view) {}));
    ASSERT_TRUE(pair.front->turn(milliseconds(0), [&](const Frame& f, std::string_view p) {
      const auto tokens = std::get<Tokens>(decode_event(f, p));
      EXPECT_EQ(tokens.ids.at(0), next++);
      EXPECT_EQ(tokens.bytes, text);
    }));
  }
  EXPECT_EQ(pair.engine->backlog_bytes(), 0u);
}

TEST(Link, F122_FramesOfAnotherIncarnationAreDropped) {
  Pair pair(2, 1);
  pair.engine->send(1, Event(Finished{}));
  int n = 0;
  EXPECT_TRUE(pair.front->turn(milliseconds(1000), [&](const Frame&, std::string_view) { ++n; }));
  EXPECT_EQ(n, 0);
}

TEST(Link, TellsThatThePeerIsGoneAfterItsLastFrame) {
  Pair pair;
  pair.engine->send(1, Event(Finished{}));
  pair.engine.reset();
  int n = 0;
  EXPECT_FALSE(pair.front->turn(milliseconds(1000), [&](const Frame&, std::string_view) { ++n; }));
  EXPECT_EQ(n, 1);
  pair.front->send(1, Command(Cancel{}));  // to nobody: no signal, no error
  EXPECT_FALSE(pair.front->turn(milliseconds(0), [](const Frame&, std::string_view) {}));
}

TEST(Link, WakeEndsAWait) {
  Pair pair;
  std::thread other([&] { pair.front->wake(); });
  // Would be noticed as a timeout of the test.
  EXPECT_TRUE(pair.front->turn(milliseconds(100'000), [](const Frame&, std::string_view) {}));
  other.join();
}

TEST(EngineEnd, PulsesHandsOverAndEndsWithTheFront) {
  Pair pair;
  std::vector<std::pair<RequestId, size_t>> got;
  std::thread engine([&] {
    EngineEnd end;
    end.on_command = [&](RequestId id, Command&& c) { got.emplace_back(id, c.index()); };
    end.pulse = [n = 0]() mutable {
      Pulse pulse;
      pulse.step_rows = ++n;
      return pulse;
    };
    end.pulse_interval = milliseconds(1);
    serve_engine(*pair.engine, end);
  });
  pair.front->send(4, Command(Submit{}));
  pair.front->send(4, Command(Cancel{}));
  int last = 0;
  while (last < 3) {
    ASSERT_TRUE(pair.front->turn(milliseconds(1000), [&](const Frame& f, std::string_view p) {
      const int n = std::get<Pulse>(decode_event(f, p)).step_rows;
      EXPECT_EQ(n, last + 1);
      last = n;
    }));
  }
  pair.front.reset();
  engine.join();
  const std::vector<std::pair<RequestId, size_t>> expected = {{4, 0}, {4, 1}, {kNoRequest, 2}};
  EXPECT_EQ(got, expected);
}

TEST(EngineEnd, ShutdownEndsIt) {
  Pair pair;
  pair.front->send(kNoRequest, Command(Shutdown{}));
  int n = 0;
  EngineEnd end;
  end.on_command = [&](RequestId, Command&&) { ++n; };
  end.pulse = [] { return Pulse{}; };
  serve_engine(*pair.engine, end);
  EXPECT_EQ(n, 1);
}

}  // namespace
}  // namespace strata::wire
