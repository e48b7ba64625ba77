#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "strata/device/device.h"
#include "strata/device/gpu/gpu_device.h"
#include "strata/device/registry.h"

// What a card promises as a device. Skipped where there is none.
namespace strata::device {
namespace {

constexpr WaitFor kTest{"test", "the card"};
constexpr Bytes kBytes = Bytes{1} << 20;

class Card : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* api : {"cuda", "hip"}) {
      try {
        n_gpus(api);
        devices_ = make_devices(api, {});
      } catch (const Error&) {
      }
    }
    if (devices_.empty()) GTEST_SKIP() << "no card";
    stream_ = device().make_stream("test");
  }
  Device& device() { return *devices_.back(); }
  Stream& stream() { return *stream_; }
  Allocation take(Mem mem, Bytes bytes = kBytes) {
    return value_or_throw(device().allocate(PlanLineId(1), bytes, mem));
  }
  void drain() { EXPECT_TRUE(stream().drain(kTest, std::chrono::seconds(20))); }

  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<Stream> stream_;
};

void fill(const Allocation& memory, int with) {
  std::memset(memory.data(), with, static_cast<size_t>(memory.bytes()));
}
bool is(const Allocation& memory, int with) {
  for (Bytes i = 0; i < memory.bytes(); ++i) {
    if (memory.data()[i] != static_cast<std::byte>(with)) return false;
  }
  return true;
}

TEST_F(Card, SaysWhatItIs) {
  EXPECT_EQ(device().kind(), Kind::kGpu);
  EXPECT_EQ(device().backend(), Backend::kGpu);
  const Capacity capacity = device().capacity();
  EXPECT_GT(capacity.free, kBytes);
  EXPECT_GE(capacity.total, capacity.free);
  EXPECT_TRUE(device().pinning().possible);
  EXPECT_FALSE(device().reads_host_memory());
}

TEST_F(Card, CopiesInOrderThereAndBack) {
  const Allocation a = take(Mem::kPinned), b = take(Mem::kPinned), on_card = take(Mem::kDevice);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(on_card.data()) % 256, 0U);
  fill(a, 3);
  fill(b, 0);
  EXPECT_EQ(fault(stream().copy(on_card.view(), a.view())), nullptr);
  EXPECT_EQ(fault(stream().copy(b.view(), on_card.view())), nullptr);
  drain();
  EXPECT_TRUE(is(b, 3));
}

TEST_F(Card, RefusesPageableMemory) {
  const Allocation a = take(Mem::kPageable), on_card = take(Mem::kDevice);
  const Try<Done> result = stream().copy(on_card.view(), a.view());
  ASSERT_NE(fault(result), nullptr);
  EXPECT_EQ(fault(result)->code, ErrorCode::kUnsupported);
}

TEST_F(Card, TellsWhatItHasNotGot) {
  const Try<Allocation> result =
      device().allocate(PlanLineId(1), device().capacity().total * 2, Mem::kDevice);
  const Fault* f = fault(result);
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(f->call, testing::EndsWith("Malloc"));
  EXPECT_NE(f->api_code, 0);
  EXPECT_GT(f->free, 0U);
  // And goes on.
  take(Mem::kDevice);
}

TEST_F(Card, EventsOrderStreams) {
  const auto other = device().make_stream("other");
  const auto event = device().make_event();
  EXPECT_TRUE(event->done());
  const Allocation a = take(Mem::kPinned), on_card = take(Mem::kDevice), b = take(Mem::kPinned);
  for (int round = 1; round < 20; ++round) {
    fill(a, round);
    fill(b, 0);
    value_or_throw(stream().copy(on_card.view(), a.view()));
    stream().record(*event);
    other->wait(*event);
    value_or_throw(other->copy(b.view(), on_card.view()));
    EXPECT_TRUE(other->drain(kTest, std::chrono::seconds(20)));
    EXPECT_TRUE(event->done());
    EXPECT_TRUE(is(b, round));
  }
}

TEST_F(Card, LeasesEndWithTheWork) {
  static int ended;
  ended = 0;
  const Allocation a = take(Mem::kPinned), on_card = take(Mem::kDevice);
  for (uint64_t i = 0; i < 5; ++i) {
    value_or_throw(stream().copy(on_card.view(), a.view()));
    stream().release_after(Lease(nullptr, i, [](void*, uint64_t key) noexcept {
      EXPECT_EQ(key, static_cast<uint64_t>(ended));
      ++ended;
    }));
  }
  drain();
  EXPECT_EQ(ended, 5);
}

TEST_F(Card, ReplaysWhatWasCaptured) {
  const Allocation a = take(Mem::kPinned), b = take(Mem::kPinned);
  const Allocation x = take(Mem::kDevice), y = take(Mem::kDevice);
  fill(a, 1);
  fill(b, 0);
  ASSERT_EQ(fault(stream().begin_capture()), nullptr);
  value_or_throw(stream().copy(x.view(), a.view()));
  value_or_throw(stream().copy(y.view(), x.view()));
  value_or_throw(stream().copy(b.view(), y.view()));
  const Graph graph = value_or_throw(stream().end_capture(PlanLineId(2)));
  drain();
  EXPECT_TRUE(is(b, 0));  // nothing ran
  for (int round = 2; round < 5; ++round) {
    fill(a, round);
    stream().replay(graph);
    drain();
    EXPECT_TRUE(is(b, round));
  }
}

TEST_F(Card, ASpoiledCaptureIsAFault) {
  const auto event = device().make_event();
  const Allocation x = take(Mem::kDevice), y = take(Mem::kDevice);
  ASSERT_EQ(fault(stream().begin_capture()), nullptr);
  value_or_throw(stream().copy(y.view(), x.view()));
  stream().record(*event);
  const Try<Graph> result = stream().end_capture(PlanLineId(2));
  ASSERT_NE(fault(result), nullptr);
  EXPECT_EQ(fault(result)->code, ErrorCode::kDevice);
  value_or_throw(stream().copy(y.view(), x.view()));
  drain();
}

TEST_F(Card, CardsOfOneListCopyFromEachOther) {
  std::vector<std::unique_ptr<Device>> two;
  try {
    two = make_devices("cuda:0,1", {});
  } catch (const Error&) {
    GTEST_SKIP() << "one card";
  }
  const auto first = two[1]->make_stream("first"), second = two[2]->make_stream("second");
  const auto event = two[1]->make_event();
  const auto at = [&](size_t i, Mem mem) {
    return value_or_throw(two[i]->allocate(PlanLineId(1), kBytes, mem));
  };
  const Allocation a = at(1, Mem::kPinned), b = at(2, Mem::kPinned);
  const Allocation x = at(1, Mem::kDevice), y = at(2, Mem::kDevice);
  fill(a, 7);
  fill(b, 0);
  value_or_throw(first->copy(x.view(), a.view()));
  value_or_throw(first->copy(y.view(), x.view()));
  first->record(*event);
  second->wait(*event);
  value_or_throw(second->copy(b.view(), y.view()));
  EXPECT_TRUE(second->drain(kTest, std::chrono::seconds(20)));
  EXPECT_TRUE(first->drain(kTest, std::chrono::seconds(20)));
  EXPECT_TRUE(is(b, 7));
}

}  // namespace
}  // namespace strata::device
