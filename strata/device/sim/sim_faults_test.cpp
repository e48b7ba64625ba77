#include "strata/device/sim/sim_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strata/device/registry.h"

namespace strata::device {
namespace {

using ::testing::HasSubstr;

constexpr WaitFor kTest{"test", "the sim"};
Deadline soon() { return Deadline::within(std::chrono::seconds(20)); }

struct Sim {
  explicit Sim(const char* list = "sim:1MiB") : devices(make_devices(list, {})) {}
  Device& card() { return *devices[1]; }
  SimFaults& faults() { return faults_of(card()); }
  Allocation allocate(Bytes bytes) {
    return value_or_throw(card().allocate(PlanLineId(1), bytes, Mem::kDevice));
  }
  Allocation pinned(Bytes bytes) {
    return value_or_throw(card().allocate(PlanLineId(1), bytes, Mem::kPinned));
  }
  std::vector<std::unique_ptr<Device>> devices;
};

template <class Body>
ErrorCode code_of(const Body& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::kCancelled;
}

TEST(SimFaults, RulesAreRead) {
  const FaultRule plain = parse_fault_rule("run#7");
  EXPECT_EQ(plain.point, FaultPoint::kRun);
  EXPECT_EQ(plain.nth, 7U);
  EXPECT_EQ(plain.times, 1U);
  EXPECT_EQ(plain.code, ErrorCode::kDevice);
  const FaultRule full = parse_fault_rule("copy#500x3:resource_exhausted");
  EXPECT_EQ(full.point, FaultPoint::kCopy);
  EXPECT_EQ(full.nth, 500U);
  EXPECT_EQ(full.times, 3U);
  EXPECT_EQ(full.code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(parse_fault_rule("launch#1:device_lost").code, ErrorCode::kDeviceLost);
  EXPECT_EQ(parse_fault_rule("allocate#1").point, FaultPoint::kAllocate);
  EXPECT_EQ(parse_fault_rule("hang#1").point, FaultPoint::kHang);
  for (const char* text :
       {"", "run", "run#", "run#0", "run#-1", "run#1x0", "run#1x", "run#1:", "run#1:gone", "walk#1",
        "#1", "run#1 ", "run#1:io:io", "run#99999999999999999999"}) {
    EXPECT_EQ(code_of([&] { parse_fault_rule(text); }), ErrorCode::kInvalidArgument) << text;
  }
}

TEST(SimFaults, TheListOfDevicesTakesThem) {
  Sim sim("sim:1MiB,fail=allocate#2:io,fail=copy#1");
  const Allocation a = sim.allocate(64);
  const auto second = sim.card().allocate(PlanLineId(1), 64, Mem::kDevice);
  ASSERT_NE(fault(second), nullptr);
  EXPECT_EQ(fault(second)->code, ErrorCode::kIo);
  EXPECT_EQ(fault(second)->asked, 64U);
  EXPECT_EQ(sim.card().allocated(), 64U);
  const Allocation b = sim.allocate(64);
  const auto stream = sim.card().make_stream("s");
  EXPECT_NE(fault(stream->copy(b.view(), a.view())), nullptr);
  EXPECT_EQ(fault(stream->copy(b.view(), a.view())), nullptr);
  EXPECT_TRUE(stream->drain(kTest, soon()));
  for (const char* list : {"fail=copy#1", "host,fail=copy#1", "sim,fail=", "sim,fail=copy"}) {
    EXPECT_EQ(code_of([&] { make_devices(list, {}); }), ErrorCode::kInvalidArgument) << list;
  }
}

TEST(SimFaults, ALaunchFailsAsItIsAskedFor) {
  Sim sim;
  const auto stream = sim.card().make_stream("s");
  int sum = 0;
  const auto add = [&](int n) { stream->run({.op = "add"}, [&sum, n] { sum += n; }); };
  add(1);
  sim.faults().add({.point = FaultPoint::kLaunch, .nth = 2, .code = ErrorCode::kIo, .times = 2});
  add(10);
  EXPECT_EQ(code_of([&] { add(100); }), ErrorCode::kIo);
  EXPECT_EQ(code_of([&] { add(1000); }), ErrorCode::kIo);
  add(10000);
  EXPECT_TRUE(stream->drain(kTest, soon()));
  EXPECT_EQ(sum, 10011) << "what was queued before and after is done";
  EXPECT_EQ(sim.faults().n_passed(FaultPoint::kLaunch), 5U);
  EXPECT_EQ(sim.faults().n_passed(FaultPoint::kRun), 3U);
}

// What is queued behind the failed work is skipped, leases and events are not.
TEST(SimFaults, QueuedWorkFailsAtTheWait) {
  Sim sim;
  const auto stream = sim.card().make_stream("s");
  const auto event = sim.card().make_event();
  int sum = 0;
  bool released = false;
  sim.faults().add({.point = FaultPoint::kRun, .nth = 2, .code = ErrorCode::kInternal});
  for (const int n : {1, 10, 100}) stream->run({.op = "add"}, [&sum, n] { sum += n; });
  const Allocation a = sim.pinned(4), b = sim.pinned(4);
  *b.as<int32_t>({1}).data() = 5;
  EXPECT_EQ(fault(stream->copy(a.view(), b.view())), nullptr);
  stream->release_after(
      Lease(&released, 0, [](void* to, uint64_t) noexcept { *static_cast<bool*>(to) = true; }));
  stream->record(*event);
  EXPECT_EQ(code_of([&] { wait(*event, kTest, soon()); }), ErrorCode::kInternal);
  EXPECT_TRUE(wait(*event, kTest, soon()));
  EXPECT_TRUE(released);
  EXPECT_EQ(sum, 1);
  EXPECT_EQ(a.as<int32_t>({1})[0], -1);
  stream->run({.op = "add"}, [&sum] { sum += 1000; });
  EXPECT_TRUE(stream->drain(kTest, soon()));
  EXPECT_EQ(sum, 1001);
}

TEST(SimFaults, ANodeOfAGraphFails) {
  for (uint64_t nth = 1; nth <= 3; ++nth) {
    Sim sim;
    const auto stream = sim.card().make_stream("s");
    int sum = 0;
    ASSERT_EQ(fault(stream->begin_capture()), nullptr);
    for (const int n : {1, 10, 100}) stream->run({.op = "add"}, [&sum, n] { sum += n; });
    const Graph graph = value_or_throw(stream->end_capture(PlanLineId(1)));
    sim.faults().add({.point = FaultPoint::kRun, .nth = nth});
    stream->replay(graph);
    stream->replay(graph);
    EXPECT_EQ(code_of([&] { stream->drain(kTest, soon()); }), ErrorCode::kDevice);
    EXPECT_TRUE(stream->drain(kTest, soon()));
    EXPECT_EQ(sum, nth == 1 ? 0 : nth == 2 ? 1 : 11);
    stream->replay(graph);
    EXPECT_TRUE(stream->drain(kTest, soon()));
  }
}

TEST(SimFaults, WorkThatHangsHoldsUpTheWait) {
  Sim sim;
  const auto stream = sim.card().make_stream("s");
  int sum = 0;
  sim.faults().add({.point = FaultPoint::kHang, .nth = 2});
  for (const int n : {1, 10, 100}) stream->run({.op = "add"}, [&sum, n] { sum += n; });
  EXPECT_FALSE(stream->drain(kTest, soon()));
  EXPECT_FALSE(stream->drain(kTest, soon()));
  EXPECT_EQ(sum, 1);
  sim.faults().resume();
  EXPECT_TRUE(stream->drain(kTest, soon()));
  EXPECT_EQ(sum, 111);
  // A stream that is closed does not wait for ever.
  sim.faults().add({.point = FaultPoint::kHang});
  stream->run({.op = "add"}, [&sum] { sum += 1000; });
  EXPECT_FALSE(stream->drain(kTest, soon()));
}

TEST(SimFaults, ALostCardRefusesEverything) {
  for (const char* rule : {"run#2:device_lost", "copy#1:device_lost", "launch#3:device_lost",
                           "allocate#3:device_lost"}) {
    Sim sim;
    auto stream = sim.card().make_stream("s");
    const auto before = sim.card().make_event();
    int sum = 0;
    const Allocation a = sim.allocate(64);
    Allocation b = sim.allocate(64);
    sim.faults().add(parse_fault_rule(rule));
    const auto lose = [&] {
      for (const int n : {1, 10}) stream->run({.op = "add"}, [&sum, n] { sum += n; });
      stream->record(*before);
      if (sim.faults().n_passed(FaultPoint::kCopy) == 0)
        value_or_throw(stream->copy(a.view(), b.view()));
      for (int i = 0; i < 3; ++i) sim.allocate(64);
      stream->run({.op = "add"}, [&sum] { sum += 100; });
      stream->drain(kTest, soon());
    };
    EXPECT_EQ(code_of(lose), ErrorCode::kDeviceLost) << rule;
    EXPECT_TRUE(sim.faults().lost());
    const int done = sum;
    sim.faults().clear();
    EXPECT_EQ(code_of([&] { stream->run({.op = "x"}, [&sum] { ++sum; }); }),
              ErrorCode::kDeviceLost);
    EXPECT_EQ(code_of([&] { value_or_throw(stream->copy(a.view(), b.view())); }),
              ErrorCode::kDeviceLost);
    EXPECT_EQ(code_of([&] { sim.allocate(64); }), ErrorCode::kDeviceLost);
    EXPECT_EQ(code_of([&] { stream->drain(kTest, soon()); }), ErrorCode::kDeviceLost);
    if (!before->done()) {
      EXPECT_EQ(code_of([&] { wait(*before, kTest, soon()); }), ErrorCode::kDeviceLost);
    }
    // Nothing queued names it any more.
    b = Allocation();
    stream.reset();
    EXPECT_EQ(sum, done) << rule;
  }
}

}  // namespace
}  // namespace strata::device
