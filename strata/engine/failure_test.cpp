#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>
#include <set>

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
  std::array<uint64_t, device::kFaultPoints> passes_{};
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
  faults.add(device::parse_fault_rule("hang run #30"));
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

// ---- what can be done without

std::vector<device::Feature> tripped(TinyEngine& engine) {
  std::vector<device::Feature> features;
  for (const device::Trip& trip : engine.instance().trips().list()) {
    features.push_back(trip.feature);
    EXPECT_THAT(trip.why, HasSubstr("injected"));
    EXPECT_THAT(trip.why, HasSubstr("device 1"));
  }
  return features;
}

void expect_wanted(TinyEngine& engine) {
  for (wire::RequestId id : {1, 2, 3}) {
    EXPECT_EQ(engine[id].n_terminal, 1);
    EXPECT_EQ(engine[id].ids, wanted()[static_cast<size_t>(id) - 1]) << id;
  }
  EXPECT_EQ(engine.failed_steps(), 0U);
}

// Before the start and after it, recorded or replayed: op by op the answers are the same.
TEST(Trips, F073_GraphsThatFailAreDoneWithout) {
  for (const char* rule :
       {"fail capture #1", "fail graph_instantiate #2", "fail launch #20 of matmul",
        "graph_instantiate fails after start", "fail alloc #1 after start", "fail replay #4"}) {
    TinyEngine engine({.chunk = 64, .device = format("sim:1GiB,{}", rule)});
    submit(engine, 1);
    engine.run_all();
    expect_wanted(engine);
    EXPECT_EQ(tripped(engine), std::vector{device::Feature::kGraphs}) << rule;
    const wire::Pulse pulse = engine.engine().pulse();
    ASSERT_EQ(pulse.degraded.size(), 1U);
    EXPECT_THAT(pulse.degraded[0], HasSubstr("graphs off on device 1"));
    EXPECT_EQ(pulse.features.at(0).name, "graphs");
    EXPECT_EQ(pulse.features.at(0).n_trips, 1U);
    EXPECT_EQ(pulse.features.at(1).n_trips, 0U);
  }
}

TEST(Trips, GraphsAreUsedUntilThen) {
  TinyEngine engine({.chunk = 64, .device = "sim:1GiB"});
  submit(engine, 1);
  engine.run_all();
  expect_wanted(engine);
  EXPECT_GT(device::faults_of(engine.instance().device()).n_passed(FaultPoint::kReplay), 3U);
  EXPECT_THAT(tripped(engine), ::testing::IsEmpty());
}

TEST(Trips, CopiesBetweenCardsGoThroughTheHostInstead) {
  for (const char* devices : {"sim:1GiB;sim:1GiB,fail copy #1 of at least 8KiB after start",
                              "sim:1GiB,peer=no;sim:1GiB", "sim:1GiB;sim:1GiB"}) {
    TinyEngine engine({.device = devices});
    submit(engine, 1);
    engine.run_all();
    expect_wanted(engine);
    const bool fails = std::string_view(devices).find("fail") != std::string_view::npos;
    const auto trips = engine.instance().trips().list();
    ASSERT_EQ(trips.size(), fails ? 1U : 0U) << devices;
    if (fails) {
      EXPECT_EQ(trips[0].feature, device::Feature::kPeerCopies);
      EXPECT_EQ(trips[0].device, DeviceId(2));
    }
  }
}

TEST(Trips, F082_WithoutPinningCopiesGoThroughARing) {
  for (const char* devices : {"sim:1GiB,pin=no", "sim:1GiB,pin=no;sim:1GiB,peer=no,pin=no"}) {
    TinyEngine engine({.chunk = 64, .device = devices});
    submit(engine, 1);
    engine.run_all();
    for (wire::RequestId id : {1, 2, 3}) {
      EXPECT_EQ(engine[id].ids, wanted()[static_cast<size_t>(id) - 1]) << devices;
    }
    const auto trips = engine.instance().trips().list();
    ASSERT_FALSE(trips.empty());
    EXPECT_EQ(trips[0].feature, device::Feature::kPinning);
    EXPECT_THAT(trips[0].why, HasSubstr("pin failed on device 1 (resource_exhausted)"));
  }
}

TEST(Trips, DraftingThatFailsThreeTimesIsLeftAlone) {
  TinyEngine engine({.device = "sim:1GiB,fail launch #1 x* of draft_input after start",
                     .mtp = true,
                     .drafts = {.most = 2, .automatic = false}});
  submit(engine, 1);
  engine.run_all();
  expect_wanted(engine);
  EXPECT_EQ(tripped(engine), std::vector{device::Feature::kDrafting});
}

// What was planned is what it takes, and little more.
TEST(Memory, MeasuredPeakIsWithin3PercentOfThePlan) {
  for (const char* devices : {"sim:1GiB", "sim:1GiB;sim:1GiB", "sim:1GiB;sim:1GiB;sim:1GiB"}) {
    for (const bool mtp : {false, true}) {
      TinyEngine engine({.chunk = 40,
                         .device = devices,
                         .mtp = mtp,
                         .drafts = {.most = mtp ? 2 : 0, .automatic = false}});
      submit(engine, 1);
      engine.run_all();
      model::Instance& instance = engine.instance();
      for (const model::Stage& stage : instance.stages().list) {
        const DeviceId id = stage.device->id();
        const Bytes planned = instance.plan().peak(id), measured = instance.ledger().peak(id);
        EXPECT_LE(measured, planned) << devices;
        EXPECT_GE(measured, planned * 97 / 100) << devices << " " << id.value << "\n"
                                                << instance.ledger().table();
        EXPECT_EQ(instance.ledger().peak(id),
                  stage.device->capacity().total - stage.device->capacity().free)
            << "what the card says";
      }
    }
  }
}

// ---- one failure anywhere, from the first allocation on

struct Site {
  int card = 1;
  FaultPoint point = FaultPoint::kRun;
  std::string op;
  uint64_t n = 0;  // passes of a run without failures
};

constexpr std::pair<FaultPoint, const char*> kSitePoints[] = {
    {FaultPoint::kAllocate, "alloc"},
    {FaultPoint::kCapture, "capture"},
    {FaultPoint::kInstantiate, "graph_instantiate"},
    {FaultPoint::kCopy, "copy"},
    {FaultPoint::kLaunch, "launch"},
    {FaultPoint::kReplay, "replay"},
    {FaultPoint::kRun, "run"}};

TinyOptions two_cards(int failing, const std::string& rule) {
  const auto card = [&](int i) { return i == failing ? "sim:1GiB," + rule : "sim:1GiB"; };
  return {.slots = 2,
          .chunk = 40,
          .device = card(1) + ";" + card(2),
          .mtp = true,
          .drafts = {.most = 2, .automatic = false}};
}

std::vector<Site> sites() {
  TinyEngine engine(two_cards(0, ""));
  submit(engine, 1);
  engine.run_all();
  expect_wanted(engine);
  std::vector<Site> found;
  for (int card = 1; card <= 2; ++card) {
    device::Device& sim = *engine.instance().stages().list[static_cast<size_t>(card) - 1].device;
    for (const auto& [where, n] : device::faults_of(sim).n_passed_by_op()) {
      const bool wanted_point = std::ranges::any_of(
          kSitePoints, [&](const auto& each) { return each.first == where.first; });
      if (wanted_point) found.push_back({card, where.first, where.second, n});
    }
  }
  return found;
}

struct Tally {
  int refused = 0, tripped = 0, run_again = 0, failed = 0, unmet = 0;
};

void fail_one(const Site& site, uint64_t nth, Tally& tally) {
  const auto* point =
      std::ranges::find_if(kSitePoints, [&](const auto& each) { return each.first == site.point; });
  const std::string rule =
      format("fail {} #{}{}", point->second, nth, site.op.empty() ? "" : " of " + site.op);
  SCOPED_TRACE(format("{} on card {}", rule, site.card));
  try {
    TinyEngine engine(two_cards(site.card, rule));
    submit(engine, 1);
    engine.run_all();
    int n_failed = 0;
    for (wire::RequestId id : {1, 2, 3}) {
      const TinyEngine::Answer& answer = engine[id];
      ASSERT_EQ(answer.n_terminal, 1) << id;
      if (answer.finished) {
        ASSERT_EQ(answer.ids, wanted()[static_cast<size_t>(id) - 1]) << id;
      } else {
        ++n_failed;
        ASSERT_THAT(answer.failed->message, HasSubstr("injected"));
      }
    }
    ASSERT_LE(n_failed, 1);
    tally.failed += n_failed;
    const bool trips = !engine.instance().trips().list().empty();
    tally.tripped += trips;
    tally.run_again += engine.failed_steps() > 0;
    tally.unmet += !trips && engine.failed_steps() == 0;
  } catch (const Error& e) {
    // What is not there at the start is no request's failure: the program says why and leaves.
    ++tally.refused;
    ASSERT_THAT(e.what(), HasSubstr("injected"));
    ASSERT_TRUE(e.code() == ErrorCode::kResourceExhausted || e.code() == ErrorCode::kDevice);
  }
}

void fail_everywhere(size_t n_sites, int n_pairs) {
  std::vector<Site> all = sites();
  std::mt19937 random(11);
  if (n_sites < all.size()) {
    std::ranges::shuffle(all, random);
    all.resize(n_sites);
  }
  Tally tally;
  int n = 0;
  const auto fail = [&](const Site& site, uint64_t nth) {
    fail_one(site, nth, tally);
    ++n;
  };
  for (const Site& site : all) {
    for (const uint64_t nth : std::set<uint64_t>{1, std::min<uint64_t>(2, site.n), site.n}) {
      fail(site, nth);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  for (int i = 0; i < n_pairs; ++i) {
    const Site& site = all[random() % all.size()];
    fail(site, 1 + random() % site.n);
    if (::testing::Test::HasFatalFailure()) return;
  }
  ::testing::Test::RecordProperty("sites", static_cast<int>(all.size()));
  std::printf(
      "%zu sites, %d failures: %d starts refused, %d features off, %d with a step run again, "
      "%d requests failed, %d without effect\n",
      all.size(), n, tally.refused, tally.tripped, tally.run_again, tally.failed, tally.unmet);
  EXPECT_GT(tally.tripped, 0);
  EXPECT_GT(tally.run_again + tally.refused, 0);
}

TEST(SingleFault, AtSomeSites) { fail_everywhere(12, 6); }
// In the suite labelled slow.
TEST(EveryFailure, DISABLED_SingleFaultEverywhere) { fail_everywhere(~size_t{0}, 500); }

// Every call of opening, loading and rehearsing, some of each kind: it starts all the same, without
// what can be done without, or says why not.
TEST(Failure, AStartThatFailsSaysWhyAndLeavesNothing) {
  for (const char* point : {"alloc", "copy", "launch", "run"}) {
    int n = 0;
    for (uint64_t nth = 1; nth < 2000; nth = nth * 3 / 2 + 1) {
      try {
        TinyEngine engine({.device = format("sim:1GiB,fail {} #{} with io", point, nth)});
      } catch (const Error& e) {
        ++n;
        EXPECT_EQ(e.code(), ErrorCode::kIo) << e.what();
        EXPECT_THAT(e.what(), HasSubstr("injected"));
      }
    }
    EXPECT_GE(n, 1) << point;
  }
}

// Out of memory while it is loaded: with the ledger, so that somebody can see what took it.
TEST(Failure, ARefusedAllocationComesWithTheLedger) {
  for (int nth = 1; nth <= 6; ++nth) {
    try {
      TinyEngine engine({.device = format("sim:1GiB,fail alloc #{} x2", nth)});
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
