#include "strata/device/stream.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "strata/device/device.h"
#include "strata/device/registry.h"

namespace strata::device {
namespace {

constexpr WaitFor kTest{"test", "the stream"};
Deadline soon() { return Deadline::within(std::chrono::seconds(20)); }

// What every device promises.
class EachStream : public testing::TestWithParam<const char*> {
 protected:
  EachStream()
      : pool_(2), devices_(make_devices(GetParam(), {.pool = &pool_})), stream_(make("compute")) {}

  Device& device() { return *devices_.back(); }
  Stream& stream() { return *stream_; }
  std::unique_ptr<Stream> make(const char* name) { return device().make_stream(name); }
  Allocation floats(int64_t n) {
    return value_or_throw(
        device().allocate(PlanLineId(1), static_cast<Bytes>(n) * 4, Mem::kDevice));
  }
  void fill(const View<float>& x, float with) {
    stream().run({.op = "fill"}, [x, with] {
      for (int64_t i = 0; i < x.size(); ++i) x[i] = with;
    });
  }
  // A step whose bits depend on the order of its ops.
  void step(const View<float>& x, const View<float>& y) {
    const int64_t n = x.size();
    stream().run({.op = "scale", .read = 8, .written = 4, .ops = 2}, [x, n](ThreadPool& pool) {
      pool.parallel_for(n, 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) x[i] = x[i] * 1.1F + 0.3F;
      });
    });
    stream().run({.op = "swap"}, [x, y, n] {
      for (int64_t i = 0; i < n; ++i) y[i] = std::sin(x[n - 1 - i]);
    });
    const Bytes half = static_cast<Bytes>(n) * 2;
    EXPECT_EQ(fault(stream().copy(view(x).part(0, half), view(y).part(half, half))), nullptr);
  }
  MemView view(const View<float>& x) {
    return {.data = reinterpret_cast<std::byte*>(x.data()),
            .bytes = static_cast<Bytes>(x.size()) * 4,
            .mem = Mem::kDevice,
            .device = device().id()};
  }
  std::vector<float> read(const View<float>& x) {
    const MemView from = view(x);
    const Allocation to =
        value_or_throw(device().allocate(PlanLineId(1), from.bytes, Mem::kPinned));
    EXPECT_EQ(fault(stream().copy(to.view(), from)), nullptr);
    EXPECT_TRUE(stream().drain(kTest, soon()));
    const View<float> copy = to.as<float>({x.size()});
    return {copy.data(), copy.data() + copy.size()};
  }

 private:
  ThreadPool pool_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<Stream> stream_;
};
INSTANTIATE_TEST_SUITE_P(Devices, EachStream, testing::Values("host", "sim:1MiB"));

TEST_P(EachStream, RunsBodiesAndCopiesInOrder) {
  const Allocation a = floats(100), b = floats(100);
  const auto x = a.as<float>({100}), y = b.as<float>({100});
  fill(x, 1);
  fill(x, 2);
  EXPECT_EQ(fault(stream().copy(b.view(), a.view())), nullptr);
  fill(x, 3);
  EXPECT_EQ(read(y), std::vector<float>(100, 2.0F));
  EXPECT_EQ(read(x), std::vector<float>(100, 3.0F));
}

TEST_P(EachStream, TakesABodyOfFullSizeAndAlignment) {
  struct alignas(16) Big {
    unsigned char bytes[Stream::kMaxBody - 16];
    int* sum;
    void operator()() const {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(this) % 16, 0U);
      for (const unsigned char byte : bytes) *sum += byte;
    }
  };
  static_assert(sizeof(Big) == Stream::kMaxBody);
  int sum = 0;
  Big big{.bytes = {}, .sum = &sum};
  std::memset(big.bytes, 2, sizeof(big.bytes));
  ASSERT_EQ(fault(stream().begin_capture()), nullptr);
  stream().run({.op = "odd"}, [] {});  // of one byte: what follows must still be aligned
  stream().run({.op = "big"}, big);
  const Graph graph = value_or_throw(stream().end_capture(PlanLineId(1)));
  stream().replay(graph);
  stream().run({.op = "big"}, big);
  EXPECT_TRUE(stream().drain(kTest, soon()));
  EXPECT_EQ(sum, 2 * 2 * static_cast<int>(sizeof(big.bytes)));
}

TEST_P(EachStream, AReplayGivesTheBitsOfTheEagerRun) {
  const Allocation a = floats(128), b = floats(128);
  const auto x = a.as<float>({128}), y = b.as<float>({128});
  fill(x, 0.5F);
  fill(y, 0);
  for (int i = 0; i < 5; ++i) step(x, y);
  const std::vector<float> want_x = read(x), want_y = read(y);

  fill(x, 0.5F);
  fill(y, 0);
  EXPECT_TRUE(stream().drain(kTest, soon()));
  ASSERT_EQ(fault(stream().begin_capture()), nullptr);
  EXPECT_TRUE(stream().capturing());
  step(x, y);
  const Graph graph = value_or_throw(stream().end_capture(PlanLineId(2)));
  EXPECT_EQ(read(x), std::vector<float>(128, 0.5F)) << "a capture computes nothing";
  for (int i = 0; i < 5; ++i) stream().replay(graph);
  EXPECT_EQ(read(x), want_x);
  EXPECT_EQ(read(y), want_y);

  // Step-varying values are data: a replay reads what memory holds then.
  fill(x, 0.5F);
  fill(y, 0);
  step(x, y);
  for (int i = 0; i < 3; ++i) stream().replay(graph);
  step(x, y);
  EXPECT_EQ(read(x), want_x);
}

TEST_P(EachStream, AGraphHoldsMemoryOfItsLine) {
  const Bytes before = device().allocated();
  {
    ASSERT_EQ(fault(stream().begin_capture()), nullptr);
    stream().run({.op = "nothing"}, [] {});
    const Graph graph = value_or_throw(stream().end_capture(PlanLineId(2)));
    EXPECT_GT(device().allocated(), before);
  }
  EXPECT_EQ(device().allocated(), before);
  ASSERT_EQ(fault(stream().begin_capture()), nullptr);
  const Graph empty = value_or_throw(stream().end_capture(PlanLineId(2)));
  stream().replay(empty);
  EXPECT_TRUE(stream().drain(kTest, soon()));
}

TEST_P(EachStream, WhatDoesNotFitIntoAGraphSpoilsTheCapture) {
  const auto event = device().make_event();
  int n_released = 0;
  ASSERT_EQ(fault(stream().begin_capture()), nullptr);
  const Graph empty = value_or_throw(stream().end_capture(PlanLineId(2)));
  const auto count = [](void* n, uint64_t) noexcept { ++*static_cast<int*>(n); };
  for (int kind = 0; kind < 4; ++kind) {
    ASSERT_EQ(fault(stream().begin_capture()), nullptr);
    if (kind == 0) stream().record(*event);
    if (kind == 1) stream().wait(*event);
    if (kind == 2) stream().replay(empty);
    if (kind == 3) stream().release_after(Lease(&n_released, 0, count));
    const Try<Graph> graph = stream().end_capture(PlanLineId(2));
    ASSERT_NE(fault(graph), nullptr) << kind;
    EXPECT_STREQ(fault(graph)->call, "end_capture of a spoiled capture");
  }
  // The next one is whole again.
  ASSERT_EQ(fault(stream().begin_capture()), nullptr);
  EXPECT_EQ(fault(stream().end_capture(PlanLineId(2))), nullptr);
  EXPECT_TRUE(stream().drain(kTest, soon()));
  EXPECT_EQ(n_released, 1);
}

TEST_P(EachStream, CapturesDoNotNest) {
  EXPECT_NE(fault(stream().end_capture(PlanLineId(2))), nullptr);
  ASSERT_EQ(fault(stream().begin_capture()), nullptr);
  EXPECT_NE(fault(stream().begin_capture()), nullptr);
  EXPECT_EQ(fault(stream().end_capture(PlanLineId(2))), nullptr);
}

TEST_P(EachStream, ALeaseEndsWhenTheWorkBeforeItIsDone) {
  struct State {
    bool ran = false, released = false, in_time = false;
    uint64_t key = 0;
  } state;
  stream().run({.op = "use"}, [&state] {
    state.ran = true;
    state.in_time = !state.released;
  });
  stream().release_after(Lease(&state, 42, [](void* s, uint64_t key) noexcept {
    static_cast<State*>(s)->released = true;
    static_cast<State*>(s)->key = key;
  }));
  EXPECT_TRUE(stream().drain(kTest, soon()));
  EXPECT_TRUE(state.ran && state.in_time && state.released);
  EXPECT_EQ(state.key, 42U);
}

TEST_P(EachStream, HandsOnWhatABodyThrowsAndGoesOn) {
  int n = 0;
  const auto fails = [&] {
    stream().run({.op = "fail"}, [] { throw Error(ErrorCode::kInternal, "layer 3: not finite"); });
    stream().drain(kTest, soon());
  };
  EXPECT_THROW(fails(), Error);
  stream().run({.op = "next"}, [&n] { ++n; });
  EXPECT_TRUE(stream().drain(kTest, soon()));
  EXPECT_EQ(n, 1);
}

TEST_P(EachStream, Counts) {
  const Allocation a = floats(64), b = floats(64);
  step(a.as<float>({64}), b.as<float>({64}));
  EXPECT_TRUE(stream().drain(kTest, soon()));
  const StreamCounters& counters = stream().counters();
  EXPECT_EQ(counters.launches.get(), 2U);
  EXPECT_EQ(counters.copies.get(), 1U);
  EXPECT_EQ(counters.copied_bytes.get(), 128U);
  EXPECT_EQ(counters.read_bytes.get(), 8U);
  EXPECT_EQ(counters.written_bytes.get(), 4U);
  EXPECT_EQ(counters.ops.get(), 2U);
  EXPECT_EQ(counters.records.get(), 1U);
}

TEST_P(EachStream, AnEventThatWasNeverRecordedIsDone) {
  const auto event = device().make_event();
  EXPECT_TRUE(event->done());
  EXPECT_TRUE(wait(*event, kTest, soon()));
  stream().wait(*event);
  EXPECT_TRUE(stream().drain(kTest, soon()));
}

TEST_P(EachStream, CopiesManyBytesOnThePool) {
  const int64_t n = 200'000;
  const auto devices = make_devices("sim:4MiB", {});
  Device& card = GetParam() == std::string("host") ? device() : *devices[1];
  const auto on = card.make_stream("copy");
  const auto bytes = static_cast<Bytes>(n) * 4;
  const Allocation a = value_or_throw(card.allocate(PlanLineId(1), bytes, Mem::kDevice));
  const Allocation b = value_or_throw(card.allocate(PlanLineId(1), bytes, Mem::kPinned));
  const auto x = a.as<int32_t>({n}), y = b.as<int32_t>({n});
  on->run({.op = "count"}, [x, n] {
    for (int64_t i = 0; i < n; ++i) x[i] = static_cast<int32_t>(i);
  });
  EXPECT_EQ(fault(on->copy(b.view(), a.view())), nullptr);
  EXPECT_TRUE(on->drain(kTest, soon()));
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], i);
}

}  // namespace
}  // namespace strata::device
