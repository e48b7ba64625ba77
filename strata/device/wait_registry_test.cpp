#include "strata/device/wait_registry.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "strata/device/registry.h"

namespace strata::device {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(WaitRegistry, ListsWhoWaitsForWhatSinceWhen) {
  ManualClock clock;
  WaitRegistry waits(clock);
  EXPECT_TRUE(waits.rows().empty());
  std::optional<WaitRegistry::Scope> first;
  first.emplace(waits, WaitFor{"engine", "logits"}, DeviceId(1),
                Deadline::within(seconds(2), clock));
  clock.advance(milliseconds(300));
  {
    const WaitRegistry::Scope second(waits, {"loader", "a shard"}, kHostId,
                                     Deadline::within(seconds(9), clock));
    const auto rows = waits.rows();
    ASSERT_EQ(rows.size(), 2U);
    EXPECT_STREQ(rows[0].what.who, "engine");
    EXPECT_STREQ(rows[0].what.what, "logits");
    EXPECT_EQ(rows[0].device, DeviceId(1));
    EXPECT_EQ(clock.now() - rows[0].since, milliseconds(300));
    EXPECT_EQ(rows[0].deadline.at - rows[0].since, seconds(2));
    EXPECT_STREQ(rows[1].what.who, "loader");
  }
  EXPECT_EQ(waits.rows().size(), 1U);
  first.reset();
  EXPECT_TRUE(waits.rows().empty());
}

TEST(WaitRegistry, MoreWaitsThanRoomAreWaitedForUnlisted) {
  WaitRegistry waits;
  std::vector<std::unique_ptr<WaitRegistry::Scope>> scopes;
  scopes.reserve(100);
  for (int i = 0; i < 100; ++i) {
    scopes.push_back(std::make_unique<WaitRegistry::Scope>(waits, WaitFor{"test", "x"}, kHostId,
                                                           Deadline::within(seconds(1))));
  }
  EXPECT_EQ(waits.rows().size(), 64U);
  scopes.clear();
  EXPECT_TRUE(waits.rows().empty());
}

// What a watchdog sees while the engine waits: asked from inside the awaited work.
TEST(Wait, IsListedWhileItLasts) {
  ManualClock clock;
  WaitRegistry waits(clock);
  const auto devices = make_devices("sim", {.waits = &waits});
  const auto stream = devices[1]->make_stream("compute");
  const auto event = devices[1]->make_event();
  std::vector<WaitRow> seen;
  stream->run({.op = "look"}, [&] { seen = waits.rows(); });
  stream->record(*event);
  EXPECT_TRUE(seen.empty());
  EXPECT_TRUE(wait(*event, {"engine step", "logits"}, Deadline::within(seconds(1), clock)));
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_STREQ(seen[0].what.who, "engine step");
  EXPECT_STREQ(seen[0].what.what, "logits");
  EXPECT_EQ(seen[0].device, DeviceId(1));
  EXPECT_TRUE(waits.rows().empty());
}

TEST(Wait, ThatThrowsIsNotListedAnyMore) {
  WaitRegistry waits;
  const auto devices = make_devices("sim", {.waits = &waits});
  const auto stream = devices[1]->make_stream("compute");
  stream->run({.op = "fail"}, [] { throw Error(ErrorCode::kInternal, "no"); });
  EXPECT_THROW(stream->drain({"test", "x"}, Deadline::within(seconds(1))), Error);
  EXPECT_TRUE(waits.rows().empty());
}

TEST(Wait, IsLateAfterTheDeadlineAndTheWorkGoesOn) {
  ManualClock clock;
  WaitRegistry waits(clock);
  const auto devices = make_devices("sim", {.waits = &waits});
  const auto stream = devices[1]->make_stream("compute");
  const auto event = devices[1]->make_event();
  int n = 0;
  for (int i = 0; i < 3; ++i) {
    stream->run({.op = "slow"}, [&] {
      clock.advance(milliseconds(10));
      ++n;
    });
  }
  stream->record(*event);
  EXPECT_FALSE(wait(*event, {"test", "x"}, Deadline::within(milliseconds(15), clock)));
  EXPECT_EQ(n, 2);
  EXPECT_FALSE(event->done());
  EXPECT_TRUE(wait(*event, {"test", "x"}, Deadline::within(milliseconds(100), clock)));
  EXPECT_EQ(n, 3);
}

TEST(WaitRegistry, TakesManyThreads) {
  WaitRegistry waits;
  std::atomic<bool> stop{false};
  std::thread watchdog([&] {
    while (!stop) {
      for (const WaitRow& row : waits.rows()) EXPECT_STREQ(row.what.who, "worker");
    }
  });
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        const WaitRegistry::Scope scope(waits, {"worker", "x"}, kHostId,
                                        Deadline::within(seconds(1)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stop = true;
  watchdog.join();
  EXPECT_TRUE(waits.rows().empty());
}

}  // namespace
}  // namespace strata::device
