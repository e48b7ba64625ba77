#include "strata/model/instance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "strata/base/error.h"
#include "strata/model/test_model.h"
#include "tests/support/temp_folder.h"

namespace strata::model {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

InstanceOptions tiny(const std::string& name = "tiny") {
  return {.path = model::testing::model_path(name), .threads = 1};
}

std::string refusal(const InstanceOptions& options) {
  try {
    Instance instance(options);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument) << e.what();
    return e.what();
  }
  return "";
}

TEST(Instance, ChoosesWhatIsNotSaid) {
  Instance instance(tiny());
  const ModelOptions& o = instance.options();
  EXPECT_EQ(o.max_context, 512);  // what it was trained on
  EXPECT_EQ(o.chunk, 512);
  EXPECT_EQ(o.slots, 1);
  EXPECT_EQ(o.cache, kernels::CacheType::kF32);  // its attention weights are
  EXPECT_THAT(instance.warnings(), IsEmpty());
  std::vector<std::string> names;
  for (const memory::Decision& d : instance.decisions()) names.push_back(d.name);
  for (const char* name : {"threads", "max-context", "prefill", "kv"}) {
    EXPECT_THAT(names, Contains(name));
  }
  Instance demo(tiny("strata-demo"));
  EXPECT_EQ(demo.options().cache, kernels::CacheType::kF16);
}

TEST(Instance, AStepHoldsARowOfEverySlot) {
  InstanceOptions options = tiny();
  options.chunk = 2;
  options.slots = 5;
  options.max_out = 1;
  Instance instance(options);
  EXPECT_EQ(instance.options().chunk, 5);
  EXPECT_EQ(instance.options().max_out, 5);
}

// F-059, F-060: the context is usable, or refused with the numbers.
TEST(Instance, ContextAboveTheTrainedOne) {
  InstanceOptions options = tiny();
  options.max_context = 1024;
  EXPECT_THAT(refusal(options), AllOf(HasSubstr("1024"), HasSubstr("512")));
  options.rope_scaling = RopeScaling::kNone;
  EXPECT_THAT(refusal(options), HasSubstr("512"));
  options.rope_scaling = RopeScaling::kYarn;
  for (double factor : {0.0, 0.5, 1.0, -2.0, 2000.0, static_cast<double>(NAN)}) {
    options.rope_scale = factor;
    EXPECT_NE(refusal(options), "") << factor;
  }
  options.rope_scale = 2;
  options.yarn_context = -4;
  EXPECT_NE(refusal(options), "");

  options.yarn_context = 0;
  Instance twice(options);
  EXPECT_EQ(twice.options().max_context, 1024);
  EXPECT_THAT(twice.warnings(), IsEmpty());

  options.max_context = 1500;
  Instance beyond(options);
  EXPECT_THAT(beyond.warnings(), Contains(AllOf(HasSubstr("1500"), HasSubstr("1024"))));

  options.max_context = 0;
  EXPECT_EQ(Instance(options).options().max_context, 1024);
}

TEST(Instance, ScalingOfTheFileCanBeTurnedOff) {
  InstanceOptions options = tiny("tiny-yarn");
  EXPECT_EQ(Instance(options).options().max_context, 512);
  options.rope_scaling = RopeScaling::kNone;
  options.max_context = 513;
  EXPECT_THAT(refusal(options), HasSubstr("512"));
  options.max_context = 512;
  Instance off(options);
  EXPECT_EQ(off.model().info().yarn_factor, 1);
}

TEST(Instance, NonsenseIsRefused) {
  const auto with = [](auto change) {
    InstanceOptions o = tiny();
    change(o);
    return refusal(o);
  };
  EXPECT_NE(with([](InstanceOptions& o) { o.max_context = -1; }), "");
  EXPECT_NE(with([](InstanceOptions& o) { o.chunk = -1; }), "");
  EXPECT_NE(with([](InstanceOptions& o) { o.slots = -1; }), "");
  EXPECT_NE(with([](InstanceOptions& o) { o.chunk = 2'000'000'000; }), "");
  EXPECT_NE(with([](InstanceOptions& o) { o.slots = 2'000'000'000; }), "");
  EXPECT_NE(with([](InstanceOptions& o) {
              o.max_context = int64_t{1} << 40;
              o.rope_scaling = RopeScaling::kYarn;
              o.rope_scale = 2;
            }),
            "");
}

TEST(Instance, TheCacheIsOfTheTypeAskedFor) {
  for (const kernels::CacheType type : {kernels::CacheType::kF16, kernels::CacheType::kF32}) {
    InstanceOptions options = tiny();
    options.kv = type;
    EXPECT_EQ(Instance(options).options().cache, type);
  }
}

// Sealed, nothing is allocated any more: a step works within what was planned.
TEST(Instance, LoadsAndSeals) {
  for (const char* device : {"host", "host,sim"}) {
    InstanceOptions options = tiny();
    options.device = device;
    options.draft = true;
    options.max_context = 64;
    Instance instance(options);
    instance.load({});
    instance.seal();
    SessionState session(instance.model().states(), 64);
    instance.model().begin_step();
    instance.model().add(session, std::vector<int32_t>{1, 2, 3});
    const int32_t row = 2;
    instance.model().inputs().set_outputs({&row, 1});
    instance.model().inputs().upload();
    instance.model().forward();
    instance.model().head();
    instance.wait("step");
    session.commit(3);
    Model& model = instance.model();
    EXPECT_TRUE(std::isfinite(model.copies().read(instance.stream(), model.logits().data(), 1)[0]));
  }
}

TEST(Instance, APlanThatDoesNotFitIsRefusedWithItsTable) {
  InstanceOptions options = tiny();
  options.device = "host,sim:1MiB";
  try {
    Instance instance(options);
    ADD_FAILURE() << "opened in 1 MiB";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kResourceExhausted);
    EXPECT_THAT(e.what(), HasSubstr("activations"));
  }
}

// What a run allocates is what the planner has promised, on every device and whatever is left to a
// card; a larger reserve takes as much away, to within an expert.
TEST(InstanceCards, WhatIsUsedIsWhatWasPlanned) {
  for (const Bytes mib : {0U, 1U, 3U, 6U, 9U}) {
    InstanceOptions options = tiny("strata-demo");
    options.device = "sim:20MiB,sim:24MiB";
    options.max_context = 64;
    options.chunk = 32;
    options.memory = os::MemoryBudget{.total = Bytes{8} << 30, .available = Bytes{4} << 30};
    options.wishes.cards.reserve_first = mib << 20;
    options.wishes.cards.reserve_later = mib << 20;
    Instance instance(options);
    instance.load({});
    instance.seal();
    for (const int32_t card : {1, 2}) {
      const Bytes planned = instance.plan().peak(DeviceId(card));
      const Bytes budget = (Bytes{card == 1 ? 20U : 24U} - mib) << 20;
      EXPECT_LE(planned, budget) << mib;
      EXPECT_LE(instance.ledger().peak(DeviceId(card)), planned);
      EXPECT_GE(instance.ledger().peak(DeviceId(card)), planned - planned * 3 / 100);
    }
    EXPECT_LE(instance.ledger().peak(device::kHostId), instance.plan().peak(device::kHostId));
    EXPECT_THAT(instance.memory_text(), HasSubstr("planned"));
  }
}

// With less on the cards than the model: the same bits, and what was learned is there next time.
TEST(InstanceCards, LearnsWhichExpertsAreUsed) {
  const ::strata::testing::TempFolder folder;
  std::vector<float> logits;
  for (int start = 0; start < 2; ++start) {
    InstanceOptions options = tiny("strata-demo");
    options.device = "sim:64MiB";
    options.max_context = 64;
    options.chunk = 32;
    options.wishes.expert_slots = 3;
    options.expert_profile = folder.path("profile");
    Instance instance(options);
    EXPECT_THAT(instance.warnings(), IsEmpty());
    EXPECT_EQ(instance.options().experts.profile != nullptr, start == 1);
    instance.load({});
    instance.seal();
    SessionState session(instance.model().states(), 64);
    for (int step = 0; step < 8; ++step) {
      instance.model().begin_step();
      instance.model().add(session, std::vector<int32_t>{10 + step});
      const int32_t row = 0;
      instance.model().inputs().set_outputs({&row, 1});
      instance.model().inputs().upload();
      instance.model().forward();
      instance.model().head();
      instance.wait("step");
      session.commit(1);
    }
    const memory::SlotCounters counters = instance.model().slot_counters();
    EXPECT_GT(counters.hits, 0U);
    EXPECT_GT(counters.misses, 0U);
    const std::vector<float> now =
        instance.model().copies().read(instance.stream(), instance.model().logits().data(), 100);
    if (start == 1) {
      EXPECT_EQ(now, logits);
    }
    logits = now;
  }
  const memory::ExpertProfile learned = memory::read_expert_profile(folder.path("profile"));
  EXPECT_GT(std::accumulate(learned.counts.begin(), learned.counts.end(), 0), 0);
}

// The memory of a machine with this much free of 64 GiB.
os::MemoryBudget machine(Bytes available) {
  return {.total = Bytes{64} << 30, .available = available, .reason = "a test"};
}

std::string weights_of(const Instance& instance) {
  for (const memory::Decision& d : instance.decisions()) {
    if (d.name == "weights") return d.value + ": " + d.why;
  }
  return "";
}

InstanceOptions demo(std::optional<WeightForm> weights, Bytes available) {
  InstanceOptions options = tiny("strata-demo");
  options.weights = weights;
  options.max_context = 64;
  options.memory = machine(available);
  return options;
}

// 2 GiB of 64 stay free, whatever is copied.
TEST(InstanceWeights, AutoTakesTilesWhereTheyFitAndTheFileElsewhere) {
  Instance roomy(demo(std::nullopt, Bytes{8} << 30));
  EXPECT_EQ(roomy.options().packing, kernels::Packing::kTiles);
  EXPECT_THAT(weights_of(roomy), AllOf(HasSubstr("tiles: "), HasSubstr(" MiB re-laid")));
  EXPECT_GT(roomy.model().info().weights.tiles, Bytes{15'000'000});
  const Bytes need = roomy.plan().peak(device::kHostId);

  Instance exact(demo(std::nullopt, need + (Bytes{2} << 30)));
  EXPECT_EQ(exact.options().packing, kernels::Packing::kTiles);

  Instance tight(demo(std::nullopt, need + (Bytes{2} << 30) - 1));
  EXPECT_EQ(tight.options().packing, kernels::Packing::kGguf);
  EXPECT_EQ(tight.model().info().weights.copied(), 0u);
  EXPECT_THAT(weights_of(tight), AllOf(HasSubstr("mapped: "), HasSubstr("2.00 GiB kept")));
  EXPECT_LT(tight.plan().peak(device::kHostId), need);
  tight.load({});  // the lines of the first attempt are gone

  Instance unknown(demo(std::nullopt, 0));
  EXPECT_EQ(unknown.options().packing, kernels::Packing::kGguf);
  EXPECT_THAT(weights_of(unknown), HasSubstr("not known"));
}

TEST(InstanceWeights, CopiesThatWereAskedForAndDoNotFitAreRefusedWithTheNumbers) {
  for (const WeightForm weights : {WeightForm::kTiles, WeightForm::kCopied}) {
    try {
      Instance instance(demo(weights, (Bytes{2} << 30) + 1000));
      ADD_FAILURE() << static_cast<int>(weights);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kResourceExhausted);
      EXPECT_THAT(e.what(), AllOf(HasSubstr("the plan needs"), HasSubstr("1000 B"),
                                  HasSubstr("2147484648 B"), HasSubstr("a reserve of 2.00 GiB"),
                                  HasSubstr("--weights mapped"), HasSubstr("in tiles of 16 rows")));
    }
  }
  Instance mapped(demo(WeightForm::kMapped, (Bytes{2} << 30) + 1000));
  EXPECT_THAT(weights_of(mapped), HasSubstr("mapped: "));
  mapped.load({});
}

TEST(InstanceWeights, CopiedLeavesNothingInTheFile) {
  Instance instance(demo(WeightForm::kCopied, Bytes{8} << 30));
  EXPECT_FALSE(instance.file().is_mapped());
  EXPECT_EQ(instance.model().info().weights.in_place, 0u);
  EXPECT_THAT(weights_of(instance), HasSubstr("copied: "));
  EXPECT_EQ(instance.plan().mapped(device::kHostId), 0u);
}

// F32 has no tiles.
TEST(InstanceWeights, AFileWithoutTilesStaysMapped) {
  InstanceOptions options = tiny();
  Instance automatic(options);
  EXPECT_EQ(automatic.options().packing, kernels::Packing::kGguf);
  EXPECT_THAT(weights_of(automatic), AllOf(HasSubstr("mapped: "), HasSubstr("for tiles")));
  options.weights = WeightForm::kTiles;
  EXPECT_THAT(Instance(options).warnings(), Contains(HasSubstr("--weights tiles")));
}

TEST(InstanceWeights, ACardTakesTilesToo) {
  InstanceOptions options = demo(std::nullopt, Bytes{8} << 30);
  options.device = "host,sim";
  Instance instance(options);
  EXPECT_EQ(instance.options().packing, kernels::Packing::kTiles);
  EXPECT_THAT(weights_of(instance), AllOf(HasSubstr("tiles: "), HasSubstr("on sim 1")));
  options.weights = WeightForm::kMapped;
  EXPECT_THAT(weights_of(Instance(options)), HasSubstr("rows: "));
}

}  // namespace
}  // namespace strata::model
