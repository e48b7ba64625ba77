#include "strata/engine/engine.h"

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <string>

#include "strata/base/error.h"
#include "strata/text/vocab.h"

namespace strata::engine {
namespace {

// A tiny model behind an engine whose steps the test makes, and what the engine said.
class TinyEngine {
 public:
  explicit TinyEngine(int slots = 2, int chunk = 16, int64_t context = 128,
                      const std::string& device = "host", uint64_t seed = 1)
      : instance_({.path = std::string(STRATA_SOURCE_DIR) + "/tests/golden/qwen4exp/tiny.gguf",
                   .device = device,
                   .threads = 2,
                   .seed = seed,
                   .max_context = context,
                   .slots = slots,
                   .chunk = chunk}),
        tokenizer_(text::read_vocab(instance_.file().metadata())),
        engine_(instance_, tokenizer_,
                {.emit = [this](std::span<const wire::Addressed> events) { take(events); },
                 .receiver_full = [this] { return full; }}) {
    engine_.prepare({});
  }

  void submit(wire::RequestId id, std::vector<int32_t> ids, int max_tokens,
              const std::function<void(wire::Submit&)>& edit = {}) {
    wire::Submit submit;
    submit.ids = std::move(ids);
    submit.max_tokens = max_tokens;
    submit.sampling.temperature = 0;
    if (edit) edit(submit);
    engine_.command(id, std::move(submit));
  }
  void run_all() {
    while (engine_.step()) {
    }
  }

  struct Answer {
    std::vector<int32_t> ids;
    std::string bytes;
    std::vector<int32_t> progress;
    std::optional<wire::Finished> finished;
    std::optional<wire::Failed> failed;
    int n_terminal = 0;
  };
  Answer& operator[](wire::RequestId id) { return answers_[id]; }
  Engine& engine() { return engine_; }
  model::Instance& instance() { return instance_; }
  bool full = false;

 private:
  void take(std::span<const wire::Addressed> events) {
    for (const wire::Addressed& addressed : events) {
      Answer& answer = answers_[addressed.request];
      EXPECT_EQ(answer.n_terminal, 0) << "an event after the end";
      if (const auto* tokens = std::get_if<wire::Tokens>(&addressed.event)) {
        answer.ids.insert(answer.ids.end(), tokens->ids.begin(), tokens->ids.end());
        answer.bytes += tokens->bytes;
      } else if (const auto* progress = std::get_if<wire::Progress>(&addressed.event)) {
        answer.progress.push_back(progress->done);
      } else if (const auto* finished = std::get_if<wire::Finished>(&addressed.event)) {
        answer.finished = *finished;
        ++answer.n_terminal;
      } else if (const auto* failed = std::get_if<wire::Failed>(&addressed.event)) {
        answer.failed = *failed;
        ++answer.n_terminal;
      }
    }
  }

  model::Instance instance_;
  text::Tokenizer tokenizer_;
  Engine engine_;
  std::map<wire::RequestId, Answer> answers_;
};

std::vector<int32_t> prompt(int n, int seed) {
  std::vector<int32_t> ids;
  for (int i = 0; i < n; ++i) ids.push_back((i * 7919 + seed * 104729) % 400 + 1);
  return ids;
}

std::vector<int32_t> alone(std::vector<int32_t> ids, int max_tokens, int chunk = 16) {
  TinyEngine engine(1, chunk);
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
  EXPECT_EQ(engine[1].progress, (std::vector<int32_t>{16, 32, 40}));
  EXPECT_EQ(engine.instance().model().states().n_free_slots(), 2);
}

TEST(Engine, F116_ABatchGivesTheSoloAnswers) {
  TinyEngine engine(3, 16);
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
  const std::vector<int32_t> wanted = alone(prompt(30, 4), 12);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    TinyEngine engine(2, 16, 128, "sim:1GiB", seed);
    engine.submit(1, prompt(30, 4), 12);
    engine.submit(2, prompt(33, 5), 12);
    engine.run_all();
    EXPECT_EQ(engine[1].ids, wanted);
  }
}

TEST(Engine, SeedsRepeatAndDiffer) {
  const auto sampled = [](uint64_t seed, int neighbours) {
    TinyEngine engine(3, 16);
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

TEST(Engine, F047_APromptBeyondTheContextIsRefusedWithTheNumbers) {
  TinyEngine engine(1, 16, 64);
  engine.submit(1, prompt(64, 1), 5);
  engine.submit(2, prompt(63, 1), 5);
  engine.run_all();
  ASSERT_TRUE(engine[1].failed);
  EXPECT_EQ(engine[1].failed->code, ErrorCode::kInvalidArgument);
  for (const char* number : {"64", "5"}) {
    EXPECT_NE(engine[1].failed->message.find(number), std::string::npos);
  }
  ASSERT_TRUE(engine[2].finished) << "one token fits";
  EXPECT_EQ(engine[2].ids.size(), 1u);
  EXPECT_EQ(engine[2].finished->reason, wire::Reason::kLength);
}

TEST(Engine, IdsOutsideTheVocabularyAreRefused) {
  TinyEngine engine;
  engine.submit(1, {1, 512}, 1);
  engine.submit(2, {-1}, 1);
  engine.submit(3, {1}, 1, [](wire::Submit& s) { s.sampling.logit_bias = {{.id = 600}}; });
  engine.submit(4, {}, 1);
  engine.run_all();
  for (wire::RequestId id : {1, 2, 3, 4}) EXPECT_TRUE(engine[id].failed) << id;
}

TEST(Engine, F113_CancelFreesTheSlotWhereverTheRequestIs) {
  TinyEngine engine(1, 4);
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

TEST(Engine, StopIdsAndStopStringsEndTheAnswer) {
  const std::vector<int32_t> free = alone(prompt(20, 6), 12);
  TinyEngine engine;
  engine.submit(1, prompt(20, 6), 12, [&](wire::Submit& s) { s.stop_ids = {free[4]}; });
  engine.run_all();
  EXPECT_EQ(engine[1].finished->reason, wire::Reason::kStop);
  const auto first = std::find(free.begin(), free.end(), free[4]);
  EXPECT_EQ(engine[1].ids, std::vector<int32_t>(free.begin(), first + 1));
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

TEST(Engine, NothingIsAllocatedAfterReady) {
  TinyEngine engine;
  const Bytes before = engine.instance().device().allocated();
  engine.submit(1, prompt(40, 1), 20);
  engine.run_all();
  EXPECT_EQ(engine.instance().device().allocated(), before);
  const auto more = engine.instance().device().allocate(PlanLineId(0), 64, device::Mem::kPageable);
  EXPECT_TRUE(fault(more)) << "the ledger is sealed";
}

}  // namespace
}  // namespace strata::engine
