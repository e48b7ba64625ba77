#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "strata/device/registry.h"
#include "strata/device/sim/sim_device.h"

namespace strata::device {
namespace {

constexpr WaitFor kTest{"test", "the sim"};
Deadline soon() { return Deadline::within(std::chrono::seconds(20)); }

constexpr uint64_t kSeeds = 64;

struct Sim {
  explicit Sim(uint64_t seed, const char* list = "sim:1MiB")
      : devices(make_devices(list, {.seed = seed})) {}
  Device& host() { return *devices[0]; }
  Device& card(size_t i = 1) { return *devices[i]; }
  Allocation allocate(Bytes bytes, Mem mem = Mem::kDevice) {
    return value_or_throw(card().allocate(PlanLineId(1), bytes, mem));
  }
  std::vector<std::unique_ptr<Device>> devices;
};

TEST(Sim, QueuedWorkRunsOnlyAtAWait) {
  Sim sim(1);
  const auto stream = sim.card().make_stream("compute");
  const auto event = sim.card().make_event();
  bool ran = false;
  stream->run({.op = "x"}, [&ran] { ran = true; });
  stream->record(*event);
  EXPECT_FALSE(ran);
  EXPECT_FALSE(event->done());
  EXPECT_TRUE(wait(*event, kTest, soon()));
  EXPECT_TRUE(ran);
  EXPECT_TRUE(event->done());
}

// Two streams append to a list; returns what came out, as digits.
std::string interleaving(uint64_t seed) {
  Sim sim(seed);
  const auto a = sim.card().make_stream("a"), b = sim.card().make_stream("b");
  std::string order;
  for (int i = 0; i < 4; ++i) {
    a->run({.op = "a"}, [&order, i] { order += static_cast<char>('0' + i); });
    b->run({.op = "b"}, [&order, i] { order += static_cast<char>('5' + i); });
  }
  EXPECT_TRUE(a->drain(kTest, soon()));
  EXPECT_TRUE(b->drain(kTest, soon()));
  return order;
}

TEST(Sim, OrdersAreLegalManyAndReproducible) {
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string order = interleaving(seed);
    EXPECT_EQ(order, interleaving(seed));
    std::string low, high;
    for (const char c : order) (c < '5' ? low : high) += c;
    EXPECT_EQ(low, "0123");
    EXPECT_EQ(high, "5678");
    seen.insert(order);
  }
  EXPECT_GT(seen.size(), 10U);
}

// x = 1 on one stream, y = x + 1 on another, x = 5 after that on the first; `events` of the two
// orders kept. Returns y.
float producer_and_consumer(uint64_t seed, bool before, bool after) {
  Sim sim(seed, "sim:1MiB,sim:1MiB");
  const auto a = sim.card(1).make_stream("a"), b = sim.card(2).make_stream("b");
  const auto written = sim.card(1).make_event(), read = sim.card(2).make_event();
  const Allocation memory = sim.allocate(2 * sizeof(float), Mem::kPinnedMapped);
  float* const x = memory.as<float>({2}).data();
  float* const y = x + 1;
  a->run({.op = "write"}, [x] { *x = 1; });
  a->record(*written);
  if (before) b->wait(*written);
  b->run({.op = "read"}, [x, y] { *y = *x + 1; });
  b->record(*read);
  if (after) a->wait(*read);
  a->run({.op = "overwrite"}, [x] { *x = 5; });
  EXPECT_TRUE(b->drain(kTest, soon()));
  const float result = *y;
  EXPECT_TRUE(a->drain(kTest, soon()));
  return result;
}

TEST(Sim, AMissingEventShowsUnderSomeSeed) {
  int n_too_early = 0, n_too_late = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_EQ(producer_and_consumer(seed, true, true), 2.0F) << seed;
    if (std::isnan(producer_and_consumer(seed, false, true))) ++n_too_early;
    if (producer_and_consumer(seed, true, false) == 6.0F) ++n_too_late;
  }
  EXPECT_GT(n_too_early, static_cast<int>(kSeeds) / 8);
  EXPECT_GT(n_too_late, static_cast<int>(kSeeds) / 8);
}

// A host stream runs at once; against a card only a wait keeps it in order.
TEST(Sim, TheHostWaitsForACard) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    for (const bool ordered : {true, false}) {
      Sim sim(seed);
      const auto host = sim.host().make_stream("host"), card = sim.card().make_stream("card");
      const auto event = sim.card().make_event();
      const Allocation memory = sim.allocate(4, Mem::kPinnedMapped);
      float* const x = memory.as<float>({1}).data();
      float y = 0;
      card->run({.op = "write"}, [x] { *x = 1; });
      card->record(*event);
      if (ordered) host->wait(*event);
      host->run({.op = "read"}, [x, &y] { y = *x; });
      EXPECT_EQ(y == 1.0F, ordered);
      EXPECT_TRUE(card->drain(kTest, soon()));
    }
  }
}

TEST(Sim, AnEventIsWaitedForAsItWasWhenAsked) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Sim sim(seed);
    const auto a = sim.card().make_stream("a"), b = sim.card().make_stream("b");
    const auto event = sim.card().make_event();
    int n = 0, seen = -1;
    a->run({.op = "1"}, [&n] { n = 1; });
    a->record(*event);
    b->wait(*event);
    b->run({.op = "look"}, [&] { seen = n; });
    a->run({.op = "2"}, [&n] { n = 2; });
    a->record(*event);
    EXPECT_TRUE(wait(*event, kTest, soon()));
    EXPECT_EQ(n, 2);
    EXPECT_TRUE(b->drain(kTest, soon()));
    EXPECT_TRUE(seen == 1 || seen == 2);
  }
}

TEST(Sim, MemoryIsNaNWhenNew) {
  Sim sim(1);
  const auto stream = sim.card().make_stream("copy");
  for (const Mem mem : {Mem::kDevice, Mem::kPinned, Mem::kPinnedMapped}) {
    const Allocation fresh = sim.allocate(64, mem), memory = sim.allocate(64, Mem::kPinned);
    std::memset(memory.data(), 0, 64);
    EXPECT_EQ(fault(stream->copy(memory.view(), fresh.view())), nullptr);
    EXPECT_TRUE(stream->drain(kTest, soon()));
    for (int i = 0; i < 16; ++i) EXPECT_TRUE(std::isnan(memory.as<float>({16})[i]));
    for (int i = 0; i < 8; ++i) EXPECT_TRUE(std::isnan(memory.as<double>({8})[i]));
    EXPECT_EQ(memory.as<int32_t>({16})[3], -1);
  }
}

TEST(Sim, CapacityIsEnforcedAndComesBack) {
  Sim sim(1, "sim:4096");
  EXPECT_EQ(sim.card().capacity().free, 4096U);
  Allocation half = sim.allocate(2048);
  const Allocation host_memory = sim.allocate(1 << 20, Mem::kPinned);
  EXPECT_EQ(sim.card().capacity().free, 2048U);
  const auto refused = sim.card().allocate(PlanLineId(1), 2049, Mem::kDevice);
  ASSERT_NE(fault(refused), nullptr);
  EXPECT_EQ(fault(refused)->free, 2048U);
  EXPECT_EQ(fault(refused)->asked, 2049U);
  EXPECT_EQ(fault(refused)->device, DeviceId(1));
  half = Allocation();
  EXPECT_NO_THROW(sim.allocate(4096));
  EXPECT_TRUE(sim.card().pinning().possible);
}

TEST(Sim, AGraphWithoutRoomIsAFault) {
  Sim sim(1, "sim:4096");
  const auto stream = sim.card().make_stream("compute");
  const Allocation most = sim.allocate(4090);
  ASSERT_EQ(fault(stream->begin_capture()), nullptr);
  stream->run({.op = "x"}, [] {});
  const auto graph = stream->end_capture(PlanLineId(3));
  ASSERT_NE(fault(graph), nullptr);
  EXPECT_EQ(fault(graph)->code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(fault(graph)->free, 6U);
  EXPECT_EQ(fault(graph)->asked, 2 * Device::kGraphNodeBytes);
}

TEST(Sim, RefusesCopiesThatACardCannotMake) {
  Sim sim(1, "sim:4096,sim:4096");
  const auto stream = sim.card(1).make_stream("copy");
  const Allocation own = sim.allocate(64);
  const Allocation peer = value_or_throw(sim.card(2).allocate(PlanLineId(1), 64, Mem::kDevice));
  const Allocation pageable = sim.allocate(64, Mem::kPageable);
  const Allocation host = value_or_throw(sim.host().allocate(PlanLineId(1), 64, Mem::kPinned));
  EXPECT_EQ(fault(stream->copy(own.view(), peer.view())), nullptr);
  EXPECT_NE(fault(stream->copy(own.view(), pageable.view())), nullptr);
  EXPECT_NE(fault(stream->copy(pageable.view(), own.view())), nullptr);
  // Memory that says it is pinned but was not registered with a card.
  const auto result = stream->copy(own.view(), host.view());
  ASSERT_NE(fault(result), nullptr);
  EXPECT_EQ(fault(result)->code, ErrorCode::kUnsupported);
  // Beyond the end of what is.
  MemView longer = own.view();
  longer.bytes = 65;
  EXPECT_NE(fault(stream->copy(longer, longer)), nullptr);
  EXPECT_EQ(stream->counters().copies.get(), 1U);
  EXPECT_TRUE(stream->drain(kTest, soon()));
}

TEST(Sim, CardsWithoutPeerAccessCopyThroughTheHost) {
  Sim sim(1, "sim:4096;sim:4096,peer=no");
  const auto stream = sim.card(2).make_stream("copy");
  const Allocation from = sim.allocate(64), pinned = sim.allocate(64, Mem::kPinned);
  const Allocation to = value_or_throw(sim.card(2).allocate(PlanLineId(1), 64, Mem::kDevice));
  const auto refused = stream->copy(to.view(), from.view());
  ASSERT_NE(fault(refused), nullptr);
  EXPECT_EQ(fault(refused)->code, ErrorCode::kUnsupported);
  EXPECT_EQ(fault(stream->copy(to.view(), pinned.view())), nullptr);
  EXPECT_TRUE(stream->drain(kTest, soon()));
}

// Memory that cannot be pinned goes through a ring of some that can.
TEST(Sim, F082_StagingWithoutPinning) {
  Sim sim(1, "sim:4MiB,pin=no");
  sim.card().set_ring_line(PlanLineId(2));
  const auto stream = sim.card().make_stream("copy");
  const Bytes bytes = 300'000;
  EXPECT_TRUE(sim.card().trips().on(Feature::kPinning, DeviceId(1)));
  const Allocation host = value_or_throw(sim.card().allocate_staging(PlanLineId(1), bytes));
  EXPECT_FALSE(sim.card().trips().on(Feature::kPinning, DeviceId(1)));
  ASSERT_EQ(sim.card().trips().list().size(), 1U);
  EXPECT_EQ(sim.card().trips().list()[0].why,
            "pin failed on device 1 (resource_exhausted): 300000 bytes asked, 131072 free");
  const Allocation back = value_or_throw(sim.card().allocate_staging(PlanLineId(1), bytes));
  EXPECT_EQ(host.view().mem, Mem::kPageable);
  const Allocation card = sim.allocate(bytes);
  const auto x = host.as<int32_t>({75'000}), y = back.as<int32_t>({75'000});
  for (int i = 0; i < 75'000; ++i) x[i] = i;
  EXPECT_EQ(fault(stream->copy(card.view(), host.view())), nullptr);
  for (int i = 0; i < 75'000; ++i) x[i] = -1;  // taken before
  EXPECT_EQ(fault(stream->copy(back.view(), card.view())), nullptr);
  for (int i = 0; i < 75'000; ++i) ASSERT_EQ(y[i], i);
  // Not into a graph, which runs later.
  ASSERT_EQ(fault(stream->begin_capture()), nullptr);
  EXPECT_NE(fault(stream->copy(card.view(), host.view())), nullptr);
  static_cast<void>(stream->end_capture(PlanLineId(1)));
}

// Two streams side by side, one behind the other where an event says so.
TEST(Sim, TheClockOfACard) {
  Sim sim(1, "sim:1MiB,link=1GB/s,vram=10GB/s,launch=1us,copy=2us");
  const auto a = sim.card().make_stream("a"), b = sim.card().make_stream("b");
  const Allocation card = sim.allocate(100'000), host = sim.allocate(100'000, Mem::kPinned);
  EXPECT_EQ(sim_time(sim.card()).count(), 0);
  EXPECT_EQ(fault(a->copy(card.view(), host.view())), nullptr);     // 2 us + 100 us
  b->run({.op = "x", .read = 500'000, .written = 500'000}, [] {});  // 1 us + 100 us
  EXPECT_TRUE(a->drain(kTest, soon()));
  EXPECT_TRUE(b->drain(kTest, soon()));
  EXPECT_EQ(sim_time(sim.card()), std::chrono::microseconds(102));
  const auto event = sim.card().make_event();
  a->run({.op = "x"}, [] {});  // until 103
  a->record(*event);
  b->wait(*event);
  b->run({.op = "x"}, [] {});  // until 104
  EXPECT_TRUE(b->drain(kTest, soon()));
  EXPECT_EQ(sim_time(sim.card()), std::chrono::microseconds(104));
}

// So long from the call on, by the clock of the waits.
TEST(Sim, ADrainEndsByTheClockOfItsDevice) {
  ManualClock clock;
  WaitRegistry waits(clock);
  const auto devices = make_devices("sim:1MiB", {.waits = &waits});
  const auto stream = devices[1]->make_stream("compute");
  clock.advance(std::chrono::hours(5));
  int n = 0;
  for (int i = 0; i < 3; ++i) {
    stream->run({.op = "x"}, [&] {
      ++n;
      clock.advance(std::chrono::seconds(10));
    });
  }
  EXPECT_FALSE(stream->drain(kTest, std::chrono::seconds(15)));
  EXPECT_EQ(n, 2);
  EXPECT_TRUE(stream->drain(kTest, std::chrono::seconds(15)));
  EXPECT_EQ(n, 3);
}

TEST(Sim, MoreWorkThanTheRingHolds) {
  Sim sim(3);
  const auto a = sim.card().make_stream("a"), b = sim.card().make_stream("b");
  const auto event = sim.card().make_event();
  std::vector<int> order;
  for (int i = 0; i < 3000; ++i) {
    a->run({.op = "x"}, [&order, i] { order.push_back(i); });
    a->record(*event);
    b->wait(*event);
  }
  EXPECT_TRUE(a->drain(kTest, soon()));
  EXPECT_TRUE(b->drain(kTest, soon()));
  EXPECT_EQ(order.size(), 3000U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(Sim, ClosingAStreamDoesItsWork) {
  Sim sim(1);
  int n = 0;
  {
    const auto event = sim.card().make_event();
    const auto first = sim.card().make_stream("first");
    const auto second = sim.card().make_stream("second");
    first->run({.op = "x"}, [&n] { n += 1; });
    first->record(*event);
    second->wait(*event);
    second->run({.op = "x"}, [&n] { n += 10; });
    second->run({.op = "fail"}, [] { throw 1; });
    second->run({.op = "skipped"}, [&n] { n += 100; });
    first->run({.op = "x"}, [&n] { n += 1000; });
  }
  EXPECT_EQ(n, 1011);
}

TEST(SimDeathTest, NothingGoesBeforeTheWorkThatNamesIt) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Sim sim(1);
  const auto stream = sim.card().make_stream("compute");
  Allocation used = sim.allocate(64), copied = sim.allocate(64), other = sim.allocate(64);
  const auto x = used.as<float>({16});
  ASSERT_EQ(fault(stream->begin_capture()), nullptr);
  stream->run({.op = "graph op"}, [x] { x[0] = 2; });
  auto graph = std::make_unique<Graph>(value_or_throw(stream->end_capture(PlanLineId(1))));

  stream->run({.op = "eager op"}, [x] { x[3] = 1; });
  EXPECT_EQ(fault(stream->copy(copied.view(), other.view())), nullptr);
  EXPECT_DEATH(used = Allocation(), "eager op on stream compute is queued");
  EXPECT_DEATH(copied = Allocation(), "copy on stream compute is queued");
  EXPECT_DEATH(other = Allocation(), "copy on stream compute is queued");
  const Allocation unused = sim.allocate(64);  // goes at any time
  EXPECT_TRUE(stream->drain(kTest, soon()));

  stream->replay(*graph);
  EXPECT_DEATH(used = Allocation(), "graph op on stream compute is queued");
  EXPECT_DEATH(graph.reset(), "check failed");
  EXPECT_TRUE(stream->drain(kTest, soon()));

  auto event = sim.card().make_event();
  stream->record(*event);
  EXPECT_DEATH(event.reset(), "check failed");
  EXPECT_TRUE(stream->drain(kTest, soon()));
  used = Allocation();
}

unsigned char touch(const std::byte* at) {
  return *static_cast<const volatile unsigned char*>(static_cast<const void*>(at));
}

TEST(SimDeathTest, TheMemoryOfACardIsForQueuedWork) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Sim sim(1);
  const auto stream = sim.card().make_stream("compute");
  const Allocation memory = sim.allocate(64), mapped = sim.allocate(64, Mem::kPinnedMapped);
  const std::byte* const at = memory.data();
  unsigned char seen = 0;
  EXPECT_DEATH(touch(at), "");
  stream->run({.op = "look"}, [at, &seen] { seen = touch(at); });
  EXPECT_DEATH(touch(at), "") << "queued, and not run yet";
  EXPECT_TRUE(stream->drain(kTest, soon()));
  EXPECT_EQ(seen, 0xff);
  EXPECT_DEATH(touch(at), "");
  EXPECT_EQ(touch(mapped.data()), 0xff);
}

TEST(SimDeathTest, AnEventIsRecordedByOneStreamAtATime) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Sim sim(1);
  const auto a = sim.card().make_stream("a"), b = sim.card().make_stream("b");
  const auto event = sim.card().make_event();
  a->record(*event);
  a->record(*event);
  EXPECT_DEATH(b->record(*event), "check failed");
  EXPECT_TRUE(a->drain(kTest, soon()));
  b->record(*event);
  EXPECT_TRUE(b->drain(kTest, soon()));
}

}  // namespace
}  // namespace strata::device
