#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "strata/base/format.h"
#include "strata/engine/draft/test_lying_source.h"
#include "strata/engine/test_engine.h"

// The promise of the whole engine: an answer has the bytes that it has alone, without guesses, from
// an empty cache, in one engine. Whatever is mixed: depth and source of guesses, neighbours and
// when they come, chunks, slots, kept states, cancellations beside it, an engine that dies in the
// middle and another, set up differently, that goes on.
namespace strata::engine {
namespace {

using testing::LyingSource;
using testing::prompt;
using testing::TinyEngine;
using testing::TinyOptions;
using Ids = std::vector<int32_t>;

struct Question {
  Ids ids;
  int max_tokens = 0;
  wire::Sampling sampling;
  std::vector<std::string> stops;
  // Alone.
  Ids answer;
  std::string bytes;
  wire::Reason reason = wire::Reason::kStop;

  void edit(wire::Submit& submit, uint64_t seed) const {
    submit.sampling = sampling;
    submit.sampling.seed = seed;
    submit.stops = stops;
  }
};

// Conversations with common beginnings, greedy and sampled, with ends of every kind. A question's
// number is its seed.
const std::vector<Question>& questions() {
  static const std::vector<Question> all = [] {
    std::vector<Question> questions;
    const Ids system = prompt(70, 1);
    for (int i = 0; i < 12; ++i) {
      Question q;
      if (i % 3 != 0) q.ids = system;
      // Every fourth goes on from the answer of the one before.
      if (i % 4 == 3) {
        q.ids = questions.back().ids;
        const Ids& said = questions.back().answer;
        q.ids.insert(q.ids.end(), said.begin(), said.end());
      }
      const Ids own = prompt(5 + 6 * (i % 5), 10 + i);
      q.ids.insert(q.ids.end(), own.begin(), own.end());
      q.max_tokens = 12 + 5 * (i % 4);
      q.sampling.temperature = i % 2 == 0 ? 0.0F : 0.7F + 0.1F * static_cast<float>(i);
      if (i % 5 == 1) q.sampling.top_p = 0.9F;
      if (i % 5 == 2) q.sampling.presence_penalty = 0.6F;
      if (i % 5 == 3) q.sampling.repetition_penalty = 1.2F;
      if (i % 5 == 3) q.sampling.repetition_window = 9;
      const auto ask = [&] {
        TinyEngine engine({.slots = 1, .context = 256});
        engine.submit(1, q.ids, q.max_tokens,
                      [&](wire::Submit& s) { q.edit(s, static_cast<uint64_t>(i)); });
        engine.run_all();
        q.answer = engine[1].ids;
        q.bytes = engine[1].bytes;
        q.reason = engine[1].finished->reason;
      };
      ask();
      if (i % 6 == 4 && q.bytes.size() > 12) {
        q.stops = {q.bytes.substr(q.bytes.size() - 6, 3)};
        ask();
      }
      questions.push_back(std::move(q));
    }
    return questions;
  }();
  return all;
}

class Mix {
 public:
  explicit Mix(uint32_t seed) : random_(seed), seed_(seed) {
    for (size_t i = 0; i < questions().size(); ++i) source_.answers[i] = questions()[i].answer;
    source_.n_guesses = [this](size_t) { return draw(9); };
    source_.n_right = [this](size_t, size_t n) { return draw(n + 1); };
  }

  void run() {
    for (wire::RequestId id = 1; id <= 10; ++id) asked_[id].question = draw(questions().size());
    while (!over()) live_one();
    for (const auto& [id, asked] : asked_) {
      const Question& q = questions()[asked.question];
      const std::string what =
          format("mix {}, question {} as {}: {}", seed_, asked.question, id, setups_);
      if (asked.cancelled) continue;
      ASSERT_EQ(asked.ids, q.answer) << what;
      ASSERT_EQ(asked.bytes, q.bytes) << what;
      ASSERT_EQ(asked.reason, q.reason) << what;
    }
  }

 private:
  struct Asked {
    size_t question = 0;
    Ids ids;
    std::string bytes;
    std::optional<wire::Reason> reason;
    bool cancelled = false;
  };
  size_t draw(size_t n) { return random_() % n; }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return all.begin()[draw(all.size())];
  }
  bool over() const {
    return std::ranges::all_of(asked_,
                               [](const auto& each) { return each.second.reason.has_value(); });
  }

  TinyOptions setup() {
    TinyOptions options;
    options.context = 256;
    options.slots = one_of({1, 2, 6});
    options.chunk = one_of({1, 7, 16, 64, 200});
    options.mtp = draw(2) == 0;
    options.drafts.most = one_of({0, 1, 2, 4, 8});
    options.drafts.automatic = draw(3) == 0;
    options.drafts.min_probability = one_of({0.0F, 0.0F, 0.3F});
    options.drafts.first_source = draw(2) == 0 ? &source_ : nullptr;
    options.cache.bytes = one_of<Bytes>({0, 600'000, 64'000'000});
    if (draw(6) == 0) options.device = "sim:1GiB";
    setups_ += format("{} slots, chunk {}, mtp {}, {} guesses, lies {}, cache {}; ", options.slots,
                      options.chunk, options.mtp, options.drafts.most,
                      options.drafts.first_source != nullptr, options.cache.bytes);
    return options;
  }

  // One engine: asks what has no answer yet, at random times, until all is answered or it "dies".
  void live_one() {
    const size_t dies_after = n_lives_++ < 2 ? 10 + draw(60) : ~size_t{0};
    TinyEngine engine(setup());
    auto next = asked_.begin();
    for (size_t step = 0; step < dies_after; ++step) {
      while (next != asked_.end() && draw(3) == 0) {
        if (!next->second.reason) submit(engine, next->first, next->second);
        ++next;
      }
      if (draw(40) == 0) cancel(engine);
      const bool worked = engine.engine().step();
      if (!worked && next == asked_.end() && draw(2) == 0) break;
    }
    for (auto& [id, asked] : asked_) {
      if (asked.reason) continue;
      const TinyEngine::Answer& got = engine[id];
      asked.ids.insert(asked.ids.end(), got.ids.begin(), got.ids.end());
      asked.bytes += got.bytes;
      if (got.finished) asked.reason = got.finished->reason;
      ASSERT_FALSE(got.failed) << got.failed->message;
    }
  }

  void submit(TinyEngine& engine, wire::RequestId id, const Asked& asked) {
    const Question& q = questions()[asked.question];
    engine.submit(id, q.ids, q.max_tokens, [&](wire::Submit& s) {
      q.edit(s, asked.question);
      s.sent = asked.ids;
    });
  }

  void cancel(TinyEngine& engine) {
    auto& [id, asked] =
        *std::next(asked_.begin(), static_cast<std::ptrdiff_t>(draw(asked_.size())));
    if (asked.reason || asked.cancelled) return;
    asked.cancelled = true;
    engine.engine().command(id, wire::Cancel{});
  }

  std::mt19937 random_;
  uint32_t seed_;
  LyingSource source_;
  std::map<wire::RequestId, Asked> asked_;
  int n_lives_ = 0;
  std::string setups_;
};

TEST(SameBytes, InAFewRandomMixes) {
  for (uint32_t seed = 1; seed <= 4; ++seed) Mix(seed).run();
}

// Run by the label slow.
TEST(SameBytes, DISABLED_InTwoHundredRandomMixes) {
  for (uint32_t seed = 100; seed < 300; ++seed) Mix(seed).run();
}

}  // namespace
}  // namespace strata::engine
