#include "strata/device/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata::device {
namespace {

TEST(Registry, TheHostIsFirstAndIdsCountOn) {
  for (const char* list :
       {"host,sim:24GiB,sim:512MiB", "sim:24GiB,host,sim:512MiB", "sim:24GiB,sim:512MiB"}) {
    const auto devices = make_devices(list, {.backend = Backend::kRef});
    ASSERT_EQ(devices.size(), 3U);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(devices[static_cast<size_t>(i)]->id(), DeviceId(i));
      EXPECT_EQ(devices[static_cast<size_t>(i)]->backend(), Backend::kRef);
    }
    EXPECT_EQ(devices[0]->kind(), Kind::kHost);
    EXPECT_EQ(devices[1]->kind(), Kind::kSim);
    EXPECT_EQ(devices[1]->capacity().total, Bytes{24} << 30);
    EXPECT_EQ(devices[2]->capacity().total, Bytes{512} << 20);
    EXPECT_EQ(devices[2]->name(), "sim 2 (512 MiB)");
  }
  EXPECT_EQ(make_devices("host", {}).size(), 1U);
  EXPECT_EQ(make_devices("sim", {})[1]->capacity().total, Bytes{8} << 30);
  EXPECT_EQ(make_devices("sim:2KiB", {})[1]->capacity().total, 2048U);
}

TEST(Registry, AListSaysWhatASimIsLike) {
  const auto devices = make_devices(
      "sim:16GiB,used=1GiB,budget=14GiB,link=12GB/s,vram=900GB/s,peer=no,display; sim:8GiB", {});
  ASSERT_EQ(devices.size(), 3U);
  const Device &a = *devices[1], &b = *devices[2];
  EXPECT_EQ(a.capacity().total, Bytes{16} << 30);
  EXPECT_EQ(a.capacity().free, Bytes{14} << 30) << "the least of what is free and the budget";
  EXPECT_EQ(a.facts().os_budget, Bytes{14} << 30);
  EXPECT_EQ(a.facts().link_rate, 12e9);
  EXPECT_EQ(a.facts().memory_rate, 900e9);
  EXPECT_TRUE(a.facts().display);
  EXPECT_FALSE(b.facts().display);
  EXPECT_FALSE(b.reaches(a));
  EXPECT_FALSE(b.reaches(*devices[0]));
  const auto linked = make_devices("sim,sim", {});
  EXPECT_TRUE(linked[1]->reaches(*linked[2]));
  // What a broken probe says is read, and judged by who uses it.
  EXPECT_EQ(make_devices("sim,link=-1GB/s", {})[1]->facts().link_rate, -1e9);
}

TEST(Registry, NamesWhatItDoesNotKnow) {
  for (const char* list : {"",
                           "cpu",
                           "host,",
                           "host,host",
                           "sim:",
                           "sim:0",
                           "sim:-1",
                           "sim:8GB",
                           "sim:GiB",
                           "sim:99999999999999999999",
                           "sim:99999999999GiB",
                           "sims",
                           ",host",
                           "0",
                           "sim,1",
                           "peer=no",
                           "sim,peer=maybe",
                           "sim,link=12",
                           "sim,link=fast",
                           "sim,used=1GB",
                           "sim,launch=5",
                           "sim,launch=-1us",
                           "sim,speed=3",
                           "host,display"}) {
    try {
      make_devices(list, {});
      ADD_FAILURE() << list;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument) << list << ": " << e.what();
    }
  }
}

TEST(Registry, SaysThatThereIsNoCard) {
  // Of the two runtimes a build has one at most, so of one there is never a card. The other may
  // have cards.
  int refused = 0;
  for (const char* list : {"host,cuda:0", "hip", "cuda:0,1", "hip:1"}) {
    try {
      make_devices(list, {});
    } catch (const Error& e) {
      ++refused;
      EXPECT_TRUE(e.code() == ErrorCode::kUnsupported || e.code() == ErrorCode::kInvalidArgument);
      EXPECT_THAT(e.what(), testing::HasSubstr("card")) << list;
    }
  }
  EXPECT_GE(refused, 2);
  for (const char* list : {"cuda:", "cuda:x", "cuda:0x", "hip:-"}) {
    try {
      make_devices(list, {});
      ADD_FAILURE() << list;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument) << list << ": " << e.what();
    }
  }
}

TEST(Registry, PoolAndWaitsAreTheCallersOrTheDevicesOwn) {
  ThreadPool pool(2);
  WaitRegistry waits;
  const auto given = make_devices("sim", {.pool = &pool, .waits = &waits});
  EXPECT_EQ(&given[0]->pool(), &pool);
  EXPECT_EQ(&given[1]->waits(), &waits);
  EXPECT_EQ(given[1]->make_stream("s")->pool().n_threads(), 2);
  const auto own = make_devices("host", {});
  EXPECT_EQ(own[0]->pool().n_threads(), 1);
}

}  // namespace
}  // namespace strata::device
