#include "strata/engine/window.h"

#include <gtest/gtest.h>

#include "strata/base/error.h"
#include "strata/engine/engine.h"
#include "strata/text/vocab.h"

namespace strata::engine {
namespace {

constexpr int64_t kContext = 400;

class Measured {
 public:
  explicit Measured(int window = 0, const std::string& device = "host")
      : instance_({.path = std::string(STRATA_SOURCE_DIR) + "/tests/golden/qwen4exp/tiny.gguf",
                   .device = device,
                   .threads = 1,
                   .max_context = kContext,
                   .chunk = 16,
                   .max_out = window}),
        tokenizer_(text::read_vocab(instance_.file().metadata())),
        engine_(instance_, tokenizer_, {.emit = [this](std::span<const wire::Addressed> events) {
                  for (const wire::Addressed& each : events) take(each.event);
                }}) {
    engine_.prepare({});
  }

  std::vector<int32_t> answer(int n_prompt, int n_answer) {
    ids_.clear();
    finished_.reset();
    wire::Submit submit;
    for (int i = 0; i < n_prompt; ++i) submit.ids.push_back((i * 7919) % 400 + 1);
    submit.max_tokens = n_answer;
    submit.sampling.temperature = 0;
    engine_.command(1, std::move(submit));
    while (engine_.step()) {
    }
    return ids_;
  }
  Engine& engine() { return engine_; }
  model::Instance& instance() { return instance_; }
  const wire::Finished& finished() const { return finished_.value(); }
  int n_steps() const { return static_cast<int>(engine_.pulse().work.steps); }

 private:
  void take(const wire::Event& event) {
    if (const auto* tokens = std::get_if<wire::Tokens>(&event)) {
      ids_.insert(ids_.end(), tokens->ids.begin(), tokens->ids.end());
    } else if (const auto* finished = std::get_if<wire::Finished>(&event)) {
      finished_ = *finished;
    } else if (const auto* failed = std::get_if<wire::Failed>(&event)) {
      ADD_FAILURE() << failed->message;
    }
  }

  model::Instance instance_;
  text::Tokenizer tokenizer_;
  Engine engine_;
  std::vector<int32_t> ids_;
  std::optional<wire::Finished> finished_;
};

TEST(MadeUpContext, IsNotComputedAndTheRestIs) {
  for (const char* device : {"host", "sim"}) {
    Measured m(0, device);
    m.engine().make_up_contexts(300, 9);
    const std::vector<int32_t> ids = m.answer(300 + 20, 6);
    EXPECT_EQ(ids.size(), 6u);
    EXPECT_EQ(m.finished().usage.prompt_tokens, 320);
    EXPECT_EQ(m.finished().usage.cached_tokens, 300);
    EXPECT_EQ(m.finished().usage.completion_tokens, 6);
    // 20 rows in chunks of 16, then a row for each further token.
    EXPECT_EQ(m.n_steps(), 2 + 5);
    EXPECT_EQ(m.answer(320, 6), ids) << "the same seed, the same state";
    m.engine().make_up_contexts(300, 10);
    EXPECT_NE(m.answer(320, 6), ids);
    // Of a shorter prompt one token is left.
    m.answer(50, 2);
    EXPECT_EQ(m.finished().usage.cached_tokens, 49);
    m.engine().make_up_contexts(0, 0);
    m.answer(50, 2);
    EXPECT_EQ(m.finished().usage.cached_tokens, 0);
  }
}

TEST(Window, IsTimedAndLeavesNothingBehind) {
  Measured m(4);
  const std::vector<int32_t> before = m.answer(30, 8);
  const WindowTimes times = time_window(m.instance(), 200, 4, 3, 1);
  ASSERT_EQ(times.one_ms.size(), 3u);
  ASSERT_EQ(times.window_ms.size(), 3u);
  for (const double ms : times.one_ms) EXPECT_GT(ms, 0);
  for (const double ms : times.window_ms) EXPECT_GT(ms, 0);
  EXPECT_EQ(times.one_experts, m.instance().model().info().top_k);
  EXPECT_GT(times.window_experts, times.one_experts);
  EXPECT_LE(times.window_experts, m.instance().model().info().n_experts);
  EXPECT_EQ(m.instance().model().states().n_free_slots(), 1);
  EXPECT_EQ(m.answer(30, 8), before);
}

TEST(Window, ThatDoesNotFitIsRefused) {
  Measured m(4);
  EXPECT_NO_THROW(time_window(m.instance(), kContext - 4, 4, 1, 1));
  EXPECT_THROW(time_window(m.instance(), kContext - 3, 4, 1, 1), Error);
}

}  // namespace
}  // namespace strata::engine
