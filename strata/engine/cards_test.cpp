#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/engine/test_engine.h"

// Cards of any number and size: the answers are those of the host, or the start is refused.
namespace strata::engine {
namespace {

using ::testing::HasSubstr;
using testing::prompt;
using testing::TinyEngine;
using testing::TinyOptions;

std::vector<std::vector<int32_t>> answers(const TinyOptions& options) {
  TinyEngine engine(options);
  for (int i = 1; i <= 3; ++i) engine.submit(static_cast<uint64_t>(i), prompt(7 * i + 4, i), 4);
  engine.run_all();
  for (const model::Stage& stage : engine.instance().stages().list) {
    if (stage.is_host()) continue;
    EXPECT_LE(engine.instance().ledger().peak(stage.device->id()),
              engine.instance().plan().peak(stage.device->id()));
  }
  return {engine[1].ids, engine[2].ids, engine[3].ids};
}

const std::vector<std::vector<int32_t>>& wanted() {
  static const std::vector<std::vector<int32_t>> of_the_host = answers({});
  return of_the_host;
}

TEST(Cards, F090_TheSameTokensForEverySplit) {
  const std::vector<std::vector<int>> splits = {{4},       {1, 3},    {2, 2},    {3, 1},
                                                {1, 1, 2}, {1, 2, 1}, {2, 1, 1}, {1, 1, 1, 1}};
  for (const std::vector<int>& split : splits) {
    TinyOptions options;
    options.layer_split = split;
    options.device = "sim:1GiB";
    for (size_t i = 1; i < split.size(); ++i)
      options.device += i % 2 == 0 ? ";sim:1GiB" : ";sim:96MiB";
    EXPECT_EQ(answers(options), wanted()) << options.device << " " << split.size();
  }
  for (const char* devices : {"sim:32MiB;sim:64MiB", "sim:64MiB;sim:32MiB", "sim:24MiB;sim:96MiB",
                              "sim:24MiB;sim:24MiB;sim:144MiB", "sim:144MiB;sim:24MiB;sim:24MiB"}) {
    EXPECT_EQ(answers({.device = devices}), wanted()) << devices;
  }
}

// What is in use by others is left alone, and a card with nothing free is left out.
TEST(Cards, F091_CardsOfUnequalSizeSomeInUse) {
  for (const char* devices :
       {"sim:24MiB;sim:8MiB;sim:8MiB;sim:12MiB", "sim:24MiB,used=6MiB;sim:8MiB,used=4MiB;sim:8MiB",
        "sim:24MiB;sim:8MiB,used=8MiB;sim:8MiB;sim:12MiB,used=2MiB", "sim:64MiB;sim:1MiB"}) {
    try {
      TinyEngine engine({.device = devices});
      for (const model::Stage& stage : engine.instance().stages().list) {
        const device::Capacity capacity = stage.device->capacity();
        EXPECT_LE(engine.instance().plan().peak(stage.device->id()), capacity.total) << devices;
      }
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kResourceExhausted) << e.what();
      EXPECT_THAT(e.what(), HasSubstr("may be used")) << devices;
      continue;
    }
    EXPECT_EQ(answers({.device = devices}), wanted()) << devices;
  }
}

TEST(Cards, F092_WrongLayerSplitsAreRefusedWithTheNumbers) {
  const std::vector<std::vector<int>> splits = {{5}, {0}, {1, 2}, {4, 4}, {1, 1, 2}};
  for (const std::vector<int>& split : splits) {
    TinyOptions options{.device = "sim:1GiB;sim:1GiB"};
    options.layer_split = split;
    try {
      TinyEngine engine(options);
      ADD_FAILURE() << split.size();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument) << e.what();
      EXPECT_THAT(e.what(), HasSubstr("4 layers"));
    }
  }
}

TEST(Cards, F096_MoreCardsThanLayers) {
  for (const int n : {4, 6, 8}) {
    std::string devices = "sim:256MiB";
    for (int i = 1; i < n; ++i) devices += ";sim:256MiB";
    EXPECT_EQ(answers({.device = devices}), wanted()) << n;
  }
}

// Graphs count as what they take: a card that is a little too small is refused or has fewer slots.
TEST(Cards, F074_GraphsWhoseCostGrows) {
  int n_started = 0, n_refused = 0;
  for (int kib = 1 << 10; kib <= 24 << 10; kib += 1 << 10) {
    const std::string device = format("sim:{}KiB,graph_node=32KiB", kib);
    try {
      EXPECT_EQ(answers({.device = device}), wanted()) << device;
      ++n_started;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kResourceExhausted) << e.what();
      EXPECT_THAT(e.what(), HasSubstr("may be used")) << device;
      EXPECT_EQ(n_started, 0) << device << ": a smaller one was enough";
      ++n_refused;
    }
  }
  EXPECT_GT(n_started, 0);
  EXPECT_GT(n_refused, 0);
}

// Requests of all kinds, some cancelled; one that is always the same tells if anything has leaked.
void soak(int n_requests) {
  TinyEngine engine({.slots = 3,
                     .chunk = 24,
                     .device = "sim:1GiB;sim:1GiB",
                     .mtp = true,
                     .drafts = {.most = 2, .automatic = false},
                     .cache = {.bytes = Bytes{4} << 20}});
  std::mt19937 random(3);
  wire::RequestId next = 1;
  std::vector<wire::RequestId> canaries;
  while (static_cast<int>(next) <= n_requests) {
    const wire::RequestId id = next++;
    if (id % 20 == 1) {
      canaries.push_back(id);
      engine.submit(id, prompt(18, 1), 6);
    } else {
      const int n = 1 + static_cast<int>(random() % 60);
      engine.submit(id, prompt(n, static_cast<int>(random() % 9)),
                    1 + static_cast<int>(random() % 9), [&](wire::Submit& submit) {
                      submit.sampling.temperature = random() % 2 == 0 ? 0 : 0.9F;
                      submit.sampling.seed = random();
                    });
    }
    for (size_t i = random() % 4; i > 0; --i) engine.engine().step();
    if (random() % 5 == 0) engine.engine().command(id, wire::Cancel{});
    if (canaries.back() == id && canaries.size() > 1) {
      engine.run_all();
      const TinyEngine::Answer& last = engine[id];
      ASSERT_TRUE(last.finished);
      if (last.finished->reason == wire::Reason::kCancelled) continue;
      static const std::vector<int32_t> alone = [] {
        TinyEngine host;
        host.submit(1, prompt(18, 1), 6);
        host.run_all();
        return host[1].ids;
      }();
      ASSERT_EQ(last.ids, alone) << "request " << id;
    }
  }
  engine.run_all();
  for (wire::RequestId id = 1; id < next; ++id) ASSERT_EQ(engine[id].n_terminal, 1) << id;
  EXPECT_EQ(engine.failed_steps(), 0U);
  EXPECT_EQ(engine.instance().model().states().n_free_slots(), 3);
}

TEST(Soak, F129_ACanaryAmongManyRequests) { soak(120); }
// In the suite labelled slow.
TEST(EveryFailure, DISABLED_F129_ACanaryAmongTwoThousandRequests) { soak(2000); }

}  // namespace
}  // namespace strata::engine
