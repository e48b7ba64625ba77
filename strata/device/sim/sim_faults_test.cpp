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

TEST(SimFaults, RulesAreReadInWords) {
  const FaultRule plain = parse_fault_rule("fail run #7");
  EXPECT_EQ(plain.point, FaultPoint::kRun);
  EXPECT_EQ(plain.action, FaultAction::kFail);
  EXPECT_EQ(plain.nth, 7U);
  EXPECT_EQ(plain.times, 1U);
  EXPECT_EQ(plain.code, ErrorCode::kDevice);
  const FaultRule memory =
      parse_fault_rule("fail alloc #7 x3 of at least 64 KiB with out_of_memory");
  EXPECT_EQ(memory.point, FaultPoint::kAllocate);
  EXPECT_EQ(memory.times, 3U);
  EXPECT_EQ(memory.at_least, Bytes{64} << 10);
  EXPECT_EQ(memory.code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(parse_fault_rule("fail pin #1").code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(parse_fault_rule("fail copy #1 with io").code, ErrorCode::kIo);
  const FaultRule hang = parse_fault_rule("hang copy #3 after start");
  EXPECT_EQ(hang.action, FaultAction::kHang);
  EXPECT_TRUE(hang.after_start);
  const FaultRule graph = parse_fault_rule("graph_instantiate fails while free < 64 MiB");
  EXPECT_EQ(graph.point, FaultPoint::kInstantiate);
  EXPECT_EQ(graph.times, FaultRule::kAlways);
  EXPECT_EQ(graph.while_free, Bytes{64} << 20);
  EXPECT_EQ(graph.code, ErrorCode::kResourceExhausted);
  const FaultRule lost = parse_fault_rule("device lost at launch #500");
  EXPECT_EQ(lost.point, FaultPoint::kLaunch);
  EXPECT_EQ(lost.nth, 500U);
  EXPECT_EQ(lost.code, ErrorCode::kDeviceLost);
  const FaultRule frozen = parse_fault_rule("freeze launch #2 of matmul for 0.25s");
  EXPECT_EQ(frozen.op, "matmul");
  EXPECT_EQ(frozen.freeze, std::chrono::milliseconds(250));
  const FaultRule others = parse_fault_rule("others use 2GiB at launch #9");
  EXPECT_EQ(others.action, FaultAction::kOthers);
  EXPECT_EQ(others.others, Bytes{2} << 30);
  for (const char* text : {"",
                           "fail",
                           "fail run",
                           "fail run #",
                           "fail run #0",
                           "fail run #-1",
                           "fail run #1 x0",
                           "fail run #1 with",
                           "fail run #1 with gone",
                           "fail walk #1",
                           "fail #1",
                           "hang alloc #1",
                           "hang copy",
                           "freeze copy #1",
                           "freeze copy #1 for 2",
                           "fail run #1 x",
                           "copy breaks",
                           "others use at copy #1",
                           "copy fails while free > 3",
                           "fail run #99999999999999999999",
                           "fail copy #1 for 2s"}) {
    EXPECT_EQ(code_of([&] { parse_fault_rule(text); }), ErrorCode::kInvalidArgument) << text;
  }
}

TEST(SimFaults, TheListOfDevicesTakesThem) {
  Sim sim("sim:1MiB,fail alloc #2 with io;fail copy #1");
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
  for (const char* list :
       {"fail copy #1", "host,fail copy #1", "sim,fail=copy#1", "sim,fail copy", "host,peer=no"}) {
    EXPECT_EQ(code_of([&] { make_devices(list, {}); }), ErrorCode::kInvalidArgument) << list;
  }
}

// What a rule is about is counted by itself.
TEST(SimFaults, RulesPickWhatTheyAreAbout) {
  Sim sim(
      "sim:1MiB,fail launch #2 of add,fail copy #1 of at least 128 with io,"
      "fail launch #1 of late after start");
  const auto stream = sim.card().make_stream("s");
  int sum = 0;
  const auto run = [&](const char* op) { stream->run({.op = op}, [&sum] { ++sum; }); };
  run("late");
  run("add");
  run("sub");
  run("sub");
  EXPECT_EQ(code_of([&] { run("add"); }), ErrorCode::kDevice);
  run("add");
  const Allocation a = sim.allocate(256), b = sim.allocate(256);
  EXPECT_EQ(fault(stream->copy(a.view().part(0, 64), b.view().part(0, 64))), nullptr);
  const auto large = stream->copy(a.view(), b.view());
  ASSERT_NE(fault(large), nullptr);
  EXPECT_EQ(fault(large)->code, ErrorCode::kIo);
  EXPECT_EQ(fault(stream->copy(a.view(), b.view())), nullptr);
  sim.card().started();
  EXPECT_EQ(code_of([&] { run("late"); }), ErrorCode::kDevice);
  EXPECT_TRUE(stream->drain(kTest, soon()));
  EXPECT_EQ(sum, 5);
}

TEST(SimFaults, GraphsFailWhileMemoryIsShort) {
  Sim sim("sim:1MiB,graph_node=4KiB,graph_instantiate fails while free < 512KiB");
  const auto stream = sim.card().make_stream("s");
  const auto record = [&] {
    EXPECT_EQ(fault(stream->begin_capture()), nullptr);
    for (int i = 0; i < 3; ++i) stream->run({.op = "x"}, [] {});
    return stream->end_capture(PlanLineId(1));
  };
  Allocation most = sim.allocate(600 << 10);
  const auto refused = record();
  ASSERT_NE(fault(refused), nullptr);
  EXPECT_EQ(to_error(*fault(refused)).message(),
            "graph_instantiate (injected) failed on device 1 (resource_exhausted): 16384 bytes "
            "asked, 434176 free");
  most = Allocation();
  const auto graph = record();
  EXPECT_EQ(fault(graph), nullptr);
  EXPECT_EQ(sim.card().allocated(), 4U * 4096) << "three nodes and the graph itself";
}

TEST(SimFaults, EachCallOfAGraphFails) {
  Sim sim("sim:1MiB,fail capture #1,fail graph_instantiate #1,fail replay #1");
  const auto stream = sim.card().make_stream("s");
  int n = 0;
  EXPECT_NE(fault(stream->begin_capture()), nullptr);
  EXPECT_FALSE(stream->capturing());
  ASSERT_EQ(fault(stream->begin_capture()), nullptr);
  EXPECT_NE(fault(stream->end_capture(PlanLineId(1))), nullptr);
  ASSERT_EQ(fault(stream->begin_capture()), nullptr);
  stream->run({.op = "x"}, [&n] { ++n; });
  const Graph graph = value_or_throw(stream->end_capture(PlanLineId(1)));
  EXPECT_EQ(code_of([&] { stream->replay(graph); }), ErrorCode::kDevice);
  stream->replay(graph);
  EXPECT_TRUE(stream->drain(kTest, soon()));
  EXPECT_EQ(n, 1);
}

TEST(SimFaults, F102_MemoryThatOthersTakeLater) {
  Sim sim("sim:1MiB,used=256KiB,others use 768KiB at launch #1");
  EXPECT_EQ(sim.card().capacity().free, Bytes{768} << 10);
  const Allocation a = sim.allocate(128 << 10);
  const auto stream = sim.card().make_stream("s");
  stream->run({.op = "x"}, [] {});
  EXPECT_EQ(sim.card().capacity().free, Bytes{128} << 10);
  EXPECT_TRUE(stream->drain(kTest, soon()));
  EXPECT_NE(fault(sim.card().allocate(PlanLineId(1), 129 << 10, Mem::kDevice)), nullptr);
  EXPECT_NO_THROW(sim.allocate(128 << 10));
}

// A card that stands still goes on; who waits less than that is late, and is told what for.
TEST(SimFaults, F097_AFreezeEnds) {
  WaitRegistry waits;
  const auto devices = make_devices("sim:1MiB,freeze launch #2 for 0.2s",
                                    {.waits = &waits, .hangs_take_time = true});
  const auto stream = devices[1]->make_stream("compute");
  stream->set_place({"layer", 7});
  int sum = 0;
  for (const int n : {1, 10, 100}) stream->run({.op = "add"}, [&sum, n] { sum += n; });
  EXPECT_FALSE(stream->drain(kTest, std::chrono::milliseconds(20)));
  EXPECT_EQ(sum, 1);
  EXPECT_EQ(waits.blocked_by(), "add at layer 7 on stream compute of device 1");
  EXPECT_TRUE(stream->drain(kTest, soon()));
  EXPECT_EQ(sum, 111);
}

TEST(SimFaults, AHangLastsUntilTheDeadline) {
  WaitRegistry waits;
  const auto devices =
      make_devices("sim:1MiB,hang copy #1", {.waits = &waits, .hangs_take_time = true});
  Device& card = *devices[1];
  const auto stream = card.make_stream("compute");
  const Allocation a = value_or_throw(card.allocate(PlanLineId(1), 64, Mem::kDevice));
  const Allocation b = value_or_throw(card.allocate(PlanLineId(1), 64, Mem::kDevice));
  EXPECT_EQ(fault(stream->copy(a.view(), b.view())), nullptr);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_FALSE(stream->drain(kTest, std::chrono::milliseconds(30)));
  EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(30));
  EXPECT_EQ(waits.blocked_by(), "copy of 64 B on stream compute of device 1");
  // A bound of the whole step counts, too.
  waits.set_bound(Deadline::within(std::chrono::milliseconds(10)));
  EXPECT_FALSE(stream->drain(kTest, std::chrono::hours(1)));
  waits.clear_bound();
  faults_of(card).resume();
  EXPECT_TRUE(stream->drain(kTest, soon()));
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
  sim.faults().add({.point = FaultPoint::kRun, .nth = 2, .action = FaultAction::kHang});
  for (const int n : {1, 10, 100}) stream->run({.op = "add"}, [&sum, n] { sum += n; });
  EXPECT_FALSE(stream->drain(kTest, soon()));
  EXPECT_FALSE(stream->drain(kTest, soon()));
  EXPECT_EQ(sum, 1);
  sim.faults().resume();
  EXPECT_TRUE(stream->drain(kTest, soon()));
  EXPECT_EQ(sum, 111);
  // A stream that is closed does not wait for ever.
  sim.faults().add({.point = FaultPoint::kRun, .action = FaultAction::kHang});
  stream->run({.op = "add"}, [&sum] { sum += 1000; });
  EXPECT_FALSE(stream->drain(kTest, soon()));
}

TEST(SimFaults, ALostCardRefusesEverything) {
  for (const char* rule : {"device lost at run #2", "device lost at copy #1",
                           "device lost at launch #3", "device lost at alloc #1"}) {
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
