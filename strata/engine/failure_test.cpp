#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/device/sim/sim_faults.h"
#include "strata/engine/test_engine.h"

// What becomes of a step that fails, wherever it fails.
namespace strata::engine {
namespace {

using device::FaultPoint;
using device::FaultRule;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::prompt;
using testing::TinyEngine;
using testing::TinyOptions;

// The first takes two steps for its prompt, the last has to wait for a slot.
constexpr int kRequests = 3;
constexpr TinyOptions kHost{};
const TinyOptions kSim{.device = "sim:1GiB"};
constexpr FaultPoint kPoints[] = {FaultPoint::kLaunch, FaultPoint::kCopy, FaultPoint::kRun};

// Three requests with the numbers first.. in the engine.
void submit(TinyEngine& engine, wire::RequestId first) {
  engine.submit(first, prompt(20, 1), 4);
  engine.submit(first + 1, prompt(9, 2), 3, [](wire::Submit& s) {
    s.sampling.temperature = 1.2F;
    s.sampling.seed = 5;
    s.sampling.presence_penalty = 1;
    s.sampling.repetition_penalty = 1.1F;
  });
  engine.submit(first + 2, prompt(5, 3), 3);
}

const std::vector<std::vector<int32_t>>& wanted() {
  static const std::vector<std::vector<int32_t>> answers = [] {
    TinyEngine engine(kHost);
    submit(engine, 1);
    engine.run_all();
    return std::vector{engine[1].ids, engine[2].ids, engine[3].ids};
  }();
  return answers;
}

// An engine on a sim that gets the three requests again and again.
class Repeated {
 public:
  Repeated() : all_pages_(pools().n_free_pages()) {
    for (const FaultPoint point : kPoints) passes_[static_cast<size_t>(point)] = n(point);
    run();
    for (const FaultPoint point : kPoints) {
      uint64_t& passes = passes_[static_cast<size_t>(point)];
      passes = n(point) - passes;
      EXPECT_GT(passes, 10U);
    }
  }

  // Returns the number of the first.
  wire::RequestId run() {
    const wire::RequestId first = next_;
    next_ += kRequests;
    submit(engine_, first);
    engine_.run_all();
    return first;
  }
  wire::RequestId run(const FaultRule& rule) {
    faults().add(rule);
    const wire::RequestId first = run();
    faults().clear();
    EXPECT_EQ(pools().n_free_slots(), 2);
    EXPECT_EQ(pools().n_free_pages(), all_pages_);
    return first;
  }
  // How often one run passes the point.
  uint64_t passes(FaultPoint point) const { return passes_[static_cast<size_t>(point)]; }
  TinyEngine& engine() { return engine_; }

 private:
  model::StatePools& pools() { return engine_.instance().model().states(); }
  device::SimFaults& faults() { return device::faults_of(engine_.instance().device()); }
  uint64_t n(FaultPoint point) { return faults().n_passed(point); }

  TinyEngine engine_{kSim};
  int all_pages_;
  std::array<uint64_t, 5> passes_{};
  wire::RequestId next_ = 1;
};

void one_failure_costs_nothing(uint64_t stride) {
  Repeated repeated;
  TinyEngine& engine = repeated.engine();
  for (const FaultPoint point : kPoints) {
    for (uint64_t nth = 1; nth <= repeated.passes(point); nth += stride) {
      const uint64_t before = engine.failed_steps();
      const wire::RequestId first = repeated.run({.point = point, .nth = nth});
      ASSERT_EQ(engine.failed_steps(), before + 1) << nth;
      for (int i = 0; i < kRequests; ++i) {
        const TinyEngine::Answer& answer = engine[first + static_cast<size_t>(i)];
        ASSERT_TRUE(answer.finished) << nth;
        ASSERT_EQ(answer.ids, wanted()[static_cast<size_t>(i)])
            << "point " << static_cast<int>(point) << " number " << nth;
        ASSERT_EQ(answer.finished->usage.completion_tokens, static_cast<int>(answer.ids.size()));
      }
    }
  }
}

void two_failures_end_the_requests_of_the_step(uint64_t stride) {
  Repeated repeated;
  for (const FaultPoint point : kPoints) {
    for (uint64_t nth = 1; nth <= repeated.passes(point); nth += stride) {
      // The second is the first of its kind in the step that is run again.
      const wire::RequestId first = repeated.run(
          {.point = point, .nth = nth, .code = ErrorCode::kResourceExhausted, .times = 2});
      int n_failed = 0;
      for (int i = 0; i < kRequests; ++i) {
        const TinyEngine::Answer& answer = repeated.engine()[first + static_cast<size_t>(i)];
        const std::vector<int32_t>& right = wanted()[static_cast<size_t>(i)];
        ASSERT_EQ(answer.n_terminal, 1) << nth;
        if (answer.finished) {
          ASSERT_EQ(answer.ids, right) << nth;
          continue;
        }
        ++n_failed;
        ASSERT_EQ(answer.failed->code, ErrorCode::kResourceExhausted) << nth;
        ASSERT_THAT(answer.failed->message, HasSubstr("injected"));
        ASSERT_LE(answer.ids.size(), right.size());
        ASSERT_TRUE(std::equal(answer.ids.begin(), answer.ids.end(), right.begin())) << nth;
      }
      // There are two slots, so at most two are in a step.
      ASSERT_GE(n_failed, 1) << nth;
      ASSERT_LE(n_failed, 2) << nth;
    }
  }
}

void a_lost_device_ends_the_engine(uint64_t stride) {
  for (const FaultPoint point : kPoints) {
    for (uint64_t nth = 1;; nth += stride) {
      TinyEngine engine(kSim);
      device::SimFaults& faults = device::faults_of(engine.instance().device());
      faults.add({.point = point, .nth = nth, .code = ErrorCode::kDeviceLost});
      submit(engine, 1);
      try {
        engine.run_all();
        ASSERT_FALSE(faults.lost()) << nth;
        break;  // there are not as many
      } catch (const Error& e) {
        ASSERT_EQ(e.code(), ErrorCode::kDeviceLost) << nth;
        ASSERT_THAT(e.what(), HasSubstr("injected"));
      }
      for (int i = 0; i < kRequests; ++i) {
        const TinyEngine::Answer& answer = engine[static_cast<size_t>(i) + 1];
        ASSERT_FALSE(answer.failed) << "whoever starts the next engine says what becomes of it";
        if (answer.finished) {
          ASSERT_EQ(answer.ids, wanted()[static_cast<size_t>(i)]);
        }
      }
    }
  }
}

TEST(Failure, OneCostsNothing) { one_failure_costs_nothing(37); }
TEST(Failure, TwoEndTheRequestsOfTheStep) { two_failures_end_the_requests_of_the_step(37); }
TEST(Failure, ALostDeviceEndsTheEngine) { a_lost_device_ends_the_engine(211); }

// In the suite labelled slow.
TEST(EveryFailure, DISABLED_OneCostsNothing) { one_failure_costs_nothing(1); }
TEST(EveryFailure, DISABLED_TwoEndTheRequestsOfTheStep) {
  two_failures_end_the_requests_of_the_step(1);
}
TEST(EveryFailure, DISABLED_ALostDeviceEndsTheEngine) { a_lost_device_ends_the_engine(7); }

// Slots and pages that queued work names are not handed on.
TEST(Failure, AStepThatNeverEndsIsALostDevice) {
  TinyEngine engine(kSim);
  device::SimFaults& faults = device::faults_of(engine.instance().device());
  submit(engine, 1);
  EXPECT_TRUE(engine.engine().step());
  faults.add({.point = FaultPoint::kHang, .nth = 30});
  try {
    engine.run_all();
    ADD_FAILURE() << "went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kDeviceLost);
    EXPECT_THAT(e.what(), HasSubstr("step did not end within"));
  }
  for (wire::RequestId id : {1, 2, 3}) EXPECT_EQ(engine[id].n_terminal, 0) << id;
  EXPECT_EQ(engine.instance().model().states().n_free_slots(), 0);
  // A process would leave now; here memory goes that the work names.
  faults.resume();
  EXPECT_TRUE(engine.instance().stream().drain({"test", "what hung"}, std::chrono::seconds(20)));
}

// Before slots, pages and tables are used for something else.
TEST(Failure, NothingOfAFailedStepStaysQueued) {
  TinyEngine engine(kSim);
  device::Device& card = engine.instance().device();
  submit(engine, 1);
  // In the middle of the launches: what was queued before is there when the call fails.
  device::faults_of(card).add({.point = FaultPoint::kLaunch, .nth = 40, .times = 2});
  const auto event = card.make_event();
  EXPECT_TRUE(engine.engine().step());
  ASSERT_TRUE(engine[1].failed);
  engine.instance().stream().record(*event);
  const uint64_t before = device::faults_of(card).n_passed(FaultPoint::kRun);
  EXPECT_TRUE(wait(*event, {"test", "nothing"}, device::Deadline::within(std::chrono::seconds(9))));
  EXPECT_EQ(device::faults_of(card).n_passed(FaultPoint::kRun), before) << "work was left behind";
}

// Every call of opening, loading and rehearsing, some of each kind.
TEST(Failure, AStartThatFailsSaysWhyAndLeavesNothing) {
  for (const char* point : {"allocate", "copy", "launch", "run"}) {
    int n = 0;
    for (uint64_t nth = 1;; nth = nth * 3 / 2 + 1, ++n) {
      try {
        TinyEngine engine({.device = format("sim:1GiB,fail={}#{}:io", point, nth)});
        break;
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::kIo) << e.what();
        EXPECT_THAT(e.what(), HasSubstr("injected"));
      }
    }
    EXPECT_GE(n, 3) << point;
  }
}

// Out of memory while it is loaded: with the ledger, so that somebody can see what took it.
TEST(Failure, ARefusedAllocationComesWithTheLedger) {
  for (int nth = 1; nth <= 6; ++nth) {
    try {
      TinyEngine engine({.device = format("sim:1GiB,fail=allocate#{}:resource_exhausted", nth)});
      ADD_FAILURE() << nth;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kResourceExhausted);
      EXPECT_THAT(e.what(), AllOf(HasSubstr("bytes asked"), HasSubstr("sampler tables"),
                                  HasSubstr("planned")))
          << nth;
    }
  }
}

}  // namespace
}  // namespace strata::engine
