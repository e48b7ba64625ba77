#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "strata/engine/engine.h"
#include "strata/text/vocab.h"

namespace strata::engine::testing {

struct TinyOptions {
  int slots = 2;
  int chunk = 16;
  int64_t context = 128;
  std::string device = "host";
  uint64_t seed = 1;  // of the order of a sim
  bool mtp = false;
  DraftOptions drafts = {.automatic = false};
  CacheOptions cache;
  std::vector<int> layer_split = {};  // empty: the planner's
};

// A tiny model behind an engine whose steps the test makes, and what the engine said.
class TinyEngine {
 public:
  explicit TinyEngine(const TinyOptions& options = {}, const Clock& clock = steady_clock())
      : instance_({.path = std::string(STRATA_SOURCE_DIR) + "/tests/golden/qwen4exp/tiny.gguf",
                   .device = options.device,
                   .threads = 2,
                   .seed = options.seed,
                   .layer_split = options.layer_split,
                   .max_context = options.context,
                   .slots = options.slots,
                   .chunk = options.chunk,
                   .spec = options.drafts.most,
                   .draft = options.mtp}),
        tokenizer_(text::read_vocab(instance_.file().metadata())),
        engine_(instance_, tokenizer_,
                {.emit = [this](std::span<const wire::Addressed> events) { take(events); },
                 .receiver_full = [this] { return full; }},
                {.drafts = options.drafts, .cache = options.cache}, clock) {
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
    std::vector<wire::TokenLogprobs> logprobs;
    std::vector<int32_t> progress;
    std::optional<wire::Finished> finished;
    std::optional<wire::Failed> failed;
    int n_terminal = 0;
  };
  Answer& operator[](wire::RequestId id) { return answers_[id]; }
  Engine& engine() { return engine_; }
  model::Instance& instance() { return instance_; }
  const text::Tokenizer& tokenizer() const { return tokenizer_; }

  uint64_t failed_steps() const { return engine_.n_failed_steps(); }

  bool full = false;
  std::function<void()> on_emit;

 private:
  void take(std::span<const wire::Addressed> events) {
    for (const wire::Addressed& addressed : events) {
      EXPECT_NE(addressed.request, wire::kNoRequest);
      Answer& answer = answers_[addressed.request];
      EXPECT_EQ(answer.n_terminal, 0) << "an event after the end";
      if (const auto* tokens = std::get_if<wire::Tokens>(&addressed.event)) {
        answer.ids.insert(answer.ids.end(), tokens->ids.begin(), tokens->ids.end());
        answer.bytes += tokens->bytes;
        answer.logprobs.insert(answer.logprobs.end(), tokens->logprobs.begin(),
                               tokens->logprobs.end());
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
    if (on_emit) on_emit();
  }

  model::Instance instance_;
  text::Tokenizer tokenizer_;
  Engine engine_;
  std::map<wire::RequestId, Answer> answers_;
};

inline std::vector<int32_t> prompt(int n, int seed) {
  std::vector<int32_t> ids;
  for (int i = 0; i < n; ++i) ids.push_back((i * 7919 + seed * 104729) % 400 + 1);
  return ids;
}

}  // namespace strata::engine::testing
