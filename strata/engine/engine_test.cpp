#include "strata/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <random>
#include <string>
#include <vector>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/engine/test_engine.h"

namespace strata::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::prompt;
using testing::TinyEngine;
using testing::TinyOptions;

std::vector<int32_t> alone(std::vector<int32_t> ids, int max_tokens, int chunk = 16) {
  TinyEngine engine({.slots = 1, .chunk = chunk});
  engine.submit(1, std::move(ids), max_tokens);
  engine.run_all();
  return engine[1].ids;
}

TEST(Engine, AnswersEndOnceWithUsage) {
  TinyEngine engine;
  engine.submit(1, prompt(40, 1), 8);
  engine.run_all();
  ASSERT_TRUE(engine[1].finished);
  EXPECT_EQ(engine[1].finished->reason, wire::Reason::kLength);
  EXPECT_EQ(engine[1].finished->usage.prompt_tokens, 40);
  EXPECT_EQ(engine[1].finished->usage.completion_tokens, 8);
  EXPECT_EQ(engine[1].ids.size(), 8u);
  EXPECT_EQ(engine[1].progress, (std::vector<int32_t>{0, 16, 32, 40}));
  EXPECT_EQ(engine.instance().model().states().n_free_slots(), 2);
}

TEST(Engine, F116_ABatchGivesTheSoloAnswers) {
  TinyEngine engine({.slots = 3});
  for (int i = 0; i < 7; ++i) {
    engine.submit(static_cast<wire::RequestId>(i + 1), prompt(5 + 9 * i, i), 6 + 5 * i);
  }
  engine.run_all();
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(engine[static_cast<wire::RequestId>(i + 1)].ids,
              alone(prompt(5 + 9 * i, i), 6 + 5 * i))
        << "request " << i;
  }
}

TEST(Engine, ChunksDoNotChangeTheAnswer) {
  const std::vector<int32_t> wanted = alone(prompt(60, 3), 20, 64);
  for (int chunk : {1, 7, 16}) EXPECT_EQ(alone(prompt(60, 3), 20, chunk), wanted) << chunk;
}

TEST(Engine, ASimulatedCardGivesTheHostsAnswer) {
  const std::vector<int32_t> first = alone(prompt(30, 4), 12), second = alone(prompt(33, 5), 12);
  ASSERT_EQ(first.size(), 12u);
  ASSERT_NE(first, second);
  for (const char* cards : {"sim:1GiB", "sim:1GiB,sim:512MiB", "sim:1GiB,sim:1GiB,sim:1GiB"}) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      TinyEngine engine({.device = cards, .seed = seed});
      engine.submit(1, prompt(30, 4), 12);
      engine.submit(2, prompt(33, 5), 12);
      engine.run_all();
      EXPECT_EQ(engine[1].ids, first) << cards << ", seed " << seed;
      EXPECT_EQ(engine[2].ids, second) << cards << ", seed " << seed;
    }
  }
}

TEST(Engine, SeedsRepeatAndDiffer) {
  const auto sampled = [](uint64_t seed, int neighbours) {
    TinyEngine engine({.slots = 3});
    const auto warm = [&](wire::Submit& s) {
      s.sampling.temperature = 1.5f;
      s.sampling.seed = seed;
      s.sampling.top_p = 0.95f;
    };
    for (int i = 0; i < neighbours; ++i) {
      engine.submit(static_cast<wire::RequestId>(10 + i), prompt(20 + i, i), 9);
    }
    engine.submit(1, prompt(12, 9), 24, warm);
    engine.run_all();
    return engine[1].ids;
  };
  EXPECT_EQ(sampled(42, 0), sampled(42, 2));
  EXPECT_NE(sampled(42, 0), sampled(7, 0));
}

// Not cut to what there is room for: whoever asks for more than that is told the numbers.
TEST(Engine, F047_WhatDoesNotFitIsRefusedWithTheNumbers) {
  TinyEngine engine({.slots = 1, .context = 64});
  engine.submit(1, prompt(71, 1), 5);
  engine.submit(2, prompt(60, 1), 5);
  engine.submit(3, prompt(60, 1), 2'000'000'000);
  engine.submit(4, prompt(60, 1), 4);
  engine.submit(5, prompt(63, 1), 1);
  engine.submit(6, prompt(60, 1), 0);
  engine.run_all();
  const auto refused = [&](wire::RequestId id, const char* prompt_size, const char* asked) {
    ASSERT_TRUE(engine[id].failed) << id;
    EXPECT_EQ(engine[id].failed->code, ErrorCode::kInvalidArgument);
    EXPECT_TRUE(engine[id].ids.empty());
    EXPECT_EQ(engine[id].failed->message,
              format("the prompt has {} tokens and {} are asked for; the context holds 64",
                     prompt_size, asked));
  };
  refused(1, "71", "5");
  refused(2, "60", "5");
  refused(3, "60", "2000000000");
  ASSERT_TRUE(engine[4].finished) << "to the last token";
  EXPECT_EQ(engine[4].ids.size(), 4u);
  EXPECT_EQ(engine[4].finished->reason, wire::Reason::kLength);
  ASSERT_TRUE(engine[5].finished) << "one token fits";
  EXPECT_EQ(engine[5].ids.size(), 1u);
  ASSERT_TRUE(engine[6].failed);
  EXPECT_EQ(engine[6].failed->code, ErrorCode::kInvalidArgument);
}

TEST(Engine, IdsOutsideTheVocabularyAreRefused) {
  TinyEngine engine;
  engine.submit(1, {1, 512}, 1);
  engine.submit(2, {-1}, 1);
  engine.submit(3, {1}, 1, [](wire::Submit& s) { s.sampling.logit_bias = {{.id = 600}}; });
  engine.submit(4, {1}, 1, [](wire::Submit& s) { s.sampling.logit_bias = {{.id = -2}}; });
  engine.submit(5, {}, 1);
  engine.submit(6, {511}, 1);
  engine.run_all();
  for (wire::RequestId id : {1, 2, 3, 4, 5}) {
    ASSERT_TRUE(engine[id].failed) << id;
    EXPECT_EQ(engine[id].failed->code, ErrorCode::kInvalidArgument) << id;
    EXPECT_THAT(engine[id].failed->message, HasSubstr(id == 5 ? "empty" : "vocabulary of 512"));
  }
  EXPECT_TRUE(engine[6].finished);
}

TEST(Engine, F113_CancelFreesTheSlotWhereverTheRequestIs) {
  TinyEngine engine({.slots = 1, .chunk = 4});
  engine.submit(1, prompt(40, 1), 10);
  engine.submit(2, prompt(8, 2), 4);
  engine.submit(3, prompt(8, 3), 4);
  engine.engine().step();
  engine.engine().command(1, wire::Cancel{});  // in its prompt
  engine.engine().command(2, wire::Cancel{});  // waiting
  engine.engine().command(9, wire::Cancel{});  // unknown
  engine.run_all();
  EXPECT_EQ(engine[1].finished->reason, wire::Reason::kCancelled);
  EXPECT_EQ(engine[2].finished->reason, wire::Reason::kCancelled);
  EXPECT_TRUE(engine[2].progress.empty()) << "it was never started";
  EXPECT_EQ(engine[3].ids, alone(prompt(8, 3), 4));
  EXPECT_EQ(engine.instance().model().states().n_free_slots(), 1);
}

// Requests that come and go at any moment, in several slots, with guesses and kept states.
TEST(Engine, FiveHundredRequestsThatComeAndGoLeaveNothing) {
  constexpr int kRequests = 500;
  TinyOptions options{.slots = 4, .chunk = 16, .mtp = true};
  options.drafts = {.most = 4, .automatic = false};
  options.cache.bytes = Bytes{1} << 20;
  TinyEngine engine(options);
  std::mt19937 random(5);
  const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  std::vector<bool> cancelled(kRequests + 1);
  int n_asked = 0;
  const auto cancel_one = [&] {
    const int id = 1 + draw(n_asked);
    cancelled[static_cast<size_t>(id)] = true;
    engine.engine().command(static_cast<wire::RequestId>(id), wire::Cancel{});
  };
  while (n_asked < kRequests) {
    for (int n = draw(4); n > 0 && n_asked < kRequests; --n) {
      ++n_asked;
      engine.submit(static_cast<wire::RequestId>(n_asked), prompt(1 + n_asked % 60, n_asked % 8),
                    1 + n_asked % 20);
    }
    // Lately asked ones are still at work.
    if (n_asked > 0 && draw(2) == 0) {
      const int id = std::max(1, n_asked - draw(6));
      cancelled[static_cast<size_t>(id)] = true;
      engine.engine().command(static_cast<wire::RequestId>(id), wire::Cancel{});
    }
    if (n_asked > 0 && draw(5) == 0) cancel_one();
    engine.engine().step();
  }
  engine.run_all();
  int n_cut = 0;
  for (int id = 1; id <= kRequests; ++id) {
    const TinyEngine::Answer& answer = engine[static_cast<wire::RequestId>(id)];
    ASSERT_EQ(answer.n_terminal, 1) << id;
    const bool cut = answer.finished && answer.finished->reason == wire::Reason::kCancelled;
    ASSERT_TRUE(!cut || cancelled[static_cast<size_t>(id)]) << id;
    n_cut += cut ? 1 : 0;
    if (!cut && id % 10 == 0) {
      EXPECT_EQ(answer.ids, alone(prompt(1 + id % 60, id % 8), 1 + id % 20)) << id;
    }
  }
  EXPECT_GT(n_cut, 50);
  EXPECT_LT(n_cut, 450);
  // What is left are the kept states: without them every page is free.
  model::Model& model = engine.instance().model();
  for (model::StatePools* pools : {&model.states(), model.draft_states()}) {
    EXPECT_EQ(pools->n_free_slots(), options.slots);
    EXPECT_EQ(pools->n_unreserved_pages(), pools->n_pages());
    const std::vector<int32_t> all = pools->take_pages(pools->n_pages());
    pools->give_pages(all);
    EXPECT_EQ(pools->n_free_pages(), pools->n_pages());
  }
}

TEST(Engine, AStopIdEndsTheAnswer) {
  const std::vector<int32_t> free = alone(prompt(20, 6), 12);
  TinyEngine engine;
  engine.submit(1, prompt(20, 6), 12, [&](wire::Submit& s) { s.stop_ids = {free[4]}; });
  engine.run_all();
  EXPECT_EQ(engine[1].finished->reason, wire::Reason::kStop);
  const auto first = std::find(free.begin(), free.end(), free[4]);
  EXPECT_EQ(engine[1].ids, std::vector<int32_t>(free.begin(), first + 1));
}

TEST(Engine, AStopStringEndsTheAnswerWithItsToken) {
  TinyEngine free;
  free.submit(1, prompt(20, 6), 12);
  free.run_all();
  // From the middle of what the first tokens say to somewhere in a later one.
  const std::string& all = free[1].bytes;
  ASSERT_GE(all.size(), 8u);
  const std::string stop = all.substr(3, 4);
  const size_t at = all.find(stop);
  size_t n_tokens = 0, n_bytes = 0;
  while (n_bytes < at + stop.size()) {
    const int32_t id = free[1].ids[n_tokens++];
    if (!free.tokenizer().is_control(id)) n_bytes += free.tokenizer().piece(id).size();
  }

  TinyEngine engine;
  engine.submit(1, prompt(20, 6), 12, [&](wire::Submit& s) { s.stops = {"no such thing", stop}; });
  engine.submit(2, prompt(20, 6), 12, [&](wire::Submit& s) { s.stops = {"no such thing"}; });
  engine.run_all();
  EXPECT_EQ(engine[1].finished->reason, wire::Reason::kStopString);
  EXPECT_EQ(engine[1].bytes, all.substr(0, at)) << "neither the stop nor what is behind it";
  EXPECT_EQ(engine[1].ids,
            std::vector<int32_t>(free[1].ids.begin(),
                                 free[1].ids.begin() + static_cast<std::ptrdiff_t>(n_tokens)));
  EXPECT_EQ(engine[2].finished->reason, wire::Reason::kLength);
  EXPECT_EQ(engine[2].bytes, all);
}

// As many as the front lets through; the last one counts.
TEST(Engine, EveryLogitBiasCounts) {
  const int32_t best = alone(prompt(8, 1), 1)[0];
  const auto with = [&](int n_biases) {
    return [best, n_biases](wire::Submit& s) {
      while (static_cast<int>(s.sampling.logit_bias.size()) < n_biases - 1) {
        s.sampling.logit_bias.push_back({.id = (best + 1) % 512, .bias = 0});
      }
      s.sampling.logit_bias.push_back({.id = best, .bias = -100});
    };
  };
  TinyEngine engine;
  engine.submit(1, prompt(8, 1), 1, with(wire::kMaxLogitBiases));
  engine.submit(2, prompt(8, 1), 1, with(wire::kMaxLogitBiases));
  engine.submit(3, prompt(8, 1), 1, with(wire::kMaxLogitBiases + 1));
  engine.run_all();
  for (wire::RequestId id : {1, 2}) {
    ASSERT_TRUE(engine[id].finished);
    EXPECT_NE(engine[id].ids.at(0), best);
  }
  ASSERT_TRUE(engine[3].failed);
  EXPECT_EQ(engine[3].failed->code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(engine[3].failed->message, AllOf(HasSubstr("4097"), HasSubstr("4096")));
}

// A repetition penalty so large that no token within the window comes again.
TEST(Engine, TheRepetitionWindowMoves) {
  TinyEngine engine;
  engine.submit(1, prompt(8, 1), 60, [](wire::Submit& s) {
    s.sampling.repetition_penalty = 1e6F;
    s.sampling.repetition_window = 5;
  });
  engine.run_all();
  std::vector<int32_t> all = prompt(8, 1);
  all.insert(all.end(), engine[1].ids.begin(), engine[1].ids.end());
  ASSERT_EQ(all.size(), 68u);
  for (size_t i = 8; i < all.size(); ++i) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(i) - 5;
    EXPECT_EQ(std::find(begin, begin + 5, all[i]), begin + 5) << "token " << i;
  }
}

TEST(Engine, ABiasOfMinusInfinityOnEverythingIsANumericError) {
  TinyEngine engine;
  engine.submit(1, prompt(8, 1), 4, [](wire::Submit& s) {
    for (int32_t id = 0; id < 512; ++id) {
      s.sampling.logit_bias.push_back({.id = id, .bias = -INFINITY});
    }
  });
  engine.submit(2, prompt(8, 2), 4);
  engine.run_all();
  ASSERT_TRUE(engine[1].failed);
  EXPECT_NE(engine[1].failed->message.find("finite"), std::string::npos);
  EXPECT_EQ(engine[2].ids, alone(prompt(8, 2), 4)) << "the others go on";
}

TEST(Engine, AFullReceiverPausesTheRows) {
  TinyEngine engine;
  engine.submit(1, prompt(8, 1), 4);
  engine.full = true;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(engine.engine().step());
  EXPECT_TRUE(engine[1].progress.empty());
  engine.full = false;
  engine.run_all();
  EXPECT_TRUE(engine[1].finished);
}

TEST(Engine, F120_AShutdownEndsAnIdleEngineAndOneAtWork) {
  for (const bool busy : {false, true}) {
    TinyEngine engine;
    if (busy) engine.submit(1, prompt(5, 1), 100);
    std::future<void> end = std::async(std::launch::async, [&] { engine.engine().run(); });
    engine.engine().command(wire::kNoRequest, wire::Shutdown{});
    const bool ended = end.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
    EXPECT_TRUE(ended) << "busy: " << busy;
    // Whatever it waits for, another command wakes it: a failure must not hang the test.
    if (!ended) engine.engine().command(wire::kNoRequest, wire::Shutdown{});
    end.wait();
    if (busy) {
      EXPECT_EQ(engine[1].n_terminal, 1);
    }
  }
}

TEST(Engine, PenaltiesCountTheAnswer) {
  // With a large presence penalty no token comes twice.
  TinyEngine engine;
  engine.submit(1, prompt(8, 1), 30, [](wire::Submit& s) { s.sampling.presence_penalty = 1000; });
  engine.run_all();
  std::vector<int32_t> ids = engine[1].ids;
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
  ASSERT_EQ(ids.size(), 30u);
}

TEST(Engine, NoDeviceMemoryIsAllocatedAfterReady) {
  for (const char* device : {"host", "sim:1GiB"}) {
    TinyEngine engine({.device = device});
    const Bytes before = engine.instance().device().allocated();
    engine.submit(1, prompt(40, 1), 20);
    engine.run_all();
    EXPECT_EQ(engine[1].ids.size(), 20u);
    EXPECT_EQ(engine.instance().device().allocated(), before);
    const auto more =
        engine.instance().device().allocate(PlanLineId(0), 64, device::Mem::kPageable);
    EXPECT_TRUE(fault(more)) << "the ledger is sealed";
  }
}

TEST(Engine, TellsItsMemoryPlan) {
  for (const char* device : {"host", "sim:1GiB"}) {
    TinyEngine engine({.device = device});
    const wire::MemoryPlan plan = engine.engine().ready().memory;
    ASSERT_EQ(plan.devices.size(), std::string(device) == "host" ? 1u : 2u);
    EXPECT_EQ(plan.storage, 0u);
    for (size_t i = 0; i < plan.devices.size(); ++i) {
      const wire::PlanDevice& of = plan.devices[i];
      EXPECT_GT(of.used, 0u) << of.name;
      EXPECT_LE(of.used, of.peak);
      EXPECT_GT(of.reserve, 0u);
      EXPECT_FALSE(of.lines.empty());
      const auto id = DeviceId(static_cast<int32_t>(i));
      EXPECT_EQ(of.peak, engine.instance().plan().peak(id));
      if (i > 0) {
        EXPECT_LE(of.peak, of.budget) << "experts fill what is left, and no more";
      }
    }
  }
}

// Ten milliseconds whenever something is told: in a request's first step, and after each step.
TEST(Engine, TimingsAreThoseOfTheClock) {
  ManualClock clock;
  TinyEngine engine({.slots = 1}, clock);
  engine.on_emit = [&] { clock.advance(std::chrono::milliseconds(10)); };
  engine.submit(1, prompt(20, 1), 4);
  engine.submit(2, prompt(5, 1), 1);
  engine.run_all();
  const wire::Timings& first = engine[1].finished->timings;
  EXPECT_EQ(first.queue_ms, 0);
  EXPECT_EQ(first.prompt_ms, 20);
  EXPECT_EQ(first.decode_ms, 30);
  const wire::Timings& second = engine[2].finished->timings;
  EXPECT_EQ(second.queue_ms, 60);
  EXPECT_EQ(second.prompt_ms, 10);
  EXPECT_EQ(second.decode_ms, 0);
}

}  // namespace
}  // namespace strata::engine
