#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "strata/base/format.h"
#include "strata/engine/draft/test_lying_source.h"
#include "strata/engine/test_engine.h"

// Guesses change how fast an answer comes and nothing else: no token of it, no bit of the state.
namespace strata::engine {
namespace {

using testing::LyingSource;
using testing::prompt;
using testing::TinyEngine;
using testing::TinyOptions;
using Edit = std::function<void(wire::Submit&)>;

constexpr uint64_t kSeed = 77;

void greedy(wire::Submit& s) { s.sampling.seed = kSeed; }

// An answer of one request alone, and the hashes of its states: by committed tokens, of the trunk
// and of the draft layer.
struct Outcome {
  std::vector<int32_t> ids;
  std::string bytes;
  wire::Finished finished;
  std::map<int64_t, uint64_t> trunk, draft;
};

Outcome run(const TinyOptions& options, const std::vector<int32_t>& ids, int max_tokens,
            const Edit& edit = greedy, bool hashes = false) {
  TinyEngine engine(options);
  engine.submit(1, ids, max_tokens, edit);
  Outcome result;
  while (engine.engine().step()) {
    if (!hashes) continue;
    for (const auto& request : engine.engine().running()) {
      const model::SessionState& session = *request->session;
      result.trunk[session.n_committed()] = session.hash();
      const auto& cells = request->drafting.cells;
      if (cells) result.draft[cells->n_committed()] = cells->hash();
    }
  }
  EXPECT_TRUE(engine[1].finished);
  result.ids = engine[1].ids;
  result.bytes = engine[1].bytes;
  result.finished = engine[1].finished.value_or(wire::Finished{});
  EXPECT_EQ(engine.instance().model().states().n_free_slots(), options.slots);
  if (options.mtp) {
    EXPECT_EQ(engine.instance().model().draft_states()->n_free_slots(), options.slots);
  }
  return result;
}

TinyOptions with_spec(int most, bool mtp = true, DraftSource* first = nullptr) {
  TinyOptions options;
  options.mtp = mtp;
  options.drafts = {.most = most, .automatic = false, .first_source = first};
  return options;
}

uint64_t n_right(const Outcome& run) {
  uint64_t n = 0;
  for (const uint64_t right : run.finished.drafts.right) n += right;
  return n;
}

// The states of a run must be among those of the undrafted one, which has all of them.
void expect_same_states(const Outcome& got, const Outcome& wanted, const std::string& what) {
  ASSERT_EQ(got.ids, wanted.ids) << what;
  for (const auto& [n, hash] : got.trunk) {
    ASSERT_TRUE(wanted.trunk.contains(n)) << what << ": " << n << " tokens";
    ASSERT_EQ(hash, wanted.trunk.at(n)) << what << ": after " << n << " tokens";
  }
}

TEST(Drafting, F066_GreedyAnswersAreTheSameForEveryDepth) {
  for (const int seed : {1, 2}) {
    const Outcome wanted = run({}, prompt(30, seed), 60, greedy, true);
    std::map<int64_t, uint64_t> cells;
    for (const int most : {1, 2, 4, 8}) {
      for (const bool mtp : {true, false}) {
        const Outcome got = run(with_spec(most, mtp), prompt(30, seed), 60, greedy, true);
        expect_same_states(got, wanted, format("{} guesses, mtp {}", most, mtp));
        EXPECT_EQ(got.bytes, wanted.bytes);
        // Nor does the draft layer's own state depend on how far it guessed.
        for (const auto& [n, hash] : got.draft) {
          EXPECT_EQ(cells.try_emplace(n, hash).first->second, hash) << n << " cells";
        }
      }
    }
    EXPECT_GT(cells.size(), 10u);
  }
}

// All right, all wrong, right then wrong at each place, and alternating.
TEST(Drafting, F064_ForcedRejectionsLeaveNoTrace) {
  const std::vector<int32_t> ids = prompt(21, 4);
  const Outcome wanted = run({}, ids, 80, greedy, true);
  for (const bool mtp : {false, true}) {
    for (const size_t n : {1, 4, 8}) {
      for (size_t right = 0; right <= n + 1; ++right) {
        LyingSource source;
        source.answers[kSeed] = wanted.ids;
        source.n_guesses = [&](size_t) { return n; };
        source.n_right = [&](size_t token, size_t) { return right <= n ? right : token % (n + 1); };
        const Outcome got =
            run(with_spec(static_cast<int>(n), mtp, &source), ids, 80, greedy, true);
        expect_same_states(got, wanted, format("{} of {} right", right, n));
        if (right >= 1 && right <= n) {
          EXPECT_GE(n_right(got), 80 * right / (right + 1) - 2 * n) << "they were used";
        }
        if (right == 0) {
          EXPECT_EQ(n_right(got), 0u);
        }
      }
    }
  }
}

TEST(Drafting, RandomWindowsOfSixSessions) {
  std::vector<std::vector<int32_t>> answers;
  for (int i = 0; i < 6; ++i) answers.push_back(run({}, prompt(9 + 7 * i, i), 40).ids);
  for (uint32_t round = 1; round <= 3; ++round) {
    LyingSource source;
    std::mt19937 random(round);
    source.n_guesses = [&](size_t) { return random() % 6; };
    source.n_right = [&](size_t, size_t n) { return random() % (n + 1); };
    TinyOptions options = with_spec(5, round == 2, &source);
    options.slots = 6;
    options.chunk = round == 3 ? 20 : 48;
    TinyEngine engine(options);
    for (size_t i = 0; i < 6; ++i) {
      source.answers[100 + i] = answers[i];
      engine.submit(i + 1, prompt(9 + 7 * static_cast<int>(i), static_cast<int>(i)), 40,
                    [&](wire::Submit& s) { s.sampling.seed = 100 + i; });
    }
    engine.run_all();
    for (size_t i = 0; i < 6; ++i) EXPECT_EQ(engine[i + 1].ids, answers[i]) << round;
  }
}

// With all that changes logits.
void sample_warmly(wire::Submit& s, float temperature) {
  s.sampling.temperature = temperature;
  s.sampling.top_p = 0.9F;
  s.sampling.presence_penalty = 0.4F;
  s.sampling.frequency_penalty = 0.2F;
  s.sampling.repetition_penalty = 1.1F;
  s.sampling.repetition_window = 16;
}

// As F068 wants it: coupled noise makes a drafted sample the undrafted one.
TEST(Drafting, F068_SampledAnswersAreTheSame) {
  uint64_t all_right = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const Edit warm = [&](wire::Submit& s) {
      sample_warmly(s, seed % 2 == 0 ? 0.7F : 1.3F);
      s.sampling.logit_bias = {{.id = 7, .bias = 2}};
      s.sampling.seed = seed;
    };
    const Outcome wanted = run({}, prompt(12, static_cast<int>(seed)), 30, warm);
    EXPECT_EQ(run(with_spec(4), prompt(12, static_cast<int>(seed)), 30, warm).ids, wanted.ids);
    LyingSource source;
    source.answers[seed] = wanted.ids;
    source.n_right = [&](size_t token, size_t n) { return token % (n + 1); };
    const Outcome got =
        run(with_spec(4, false, &source), prompt(12, static_cast<int>(seed)), 30, warm);
    EXPECT_EQ(got.ids, wanted.ids);
    all_right += n_right(got);
  }
  EXPECT_GT(all_right, 50u) << "guesses were right, penalties and all";
}

// Several answers at once, all drafted.
TEST(Drafting, F068_TwoHundredSeedsAtTwoTemperatures) {
  constexpr uint64_t kSeeds = 200;
  const auto ask = [](TinyEngine& engine) {
    for (uint64_t i = 0; i < 2 * kSeeds; ++i) {
      engine.submit(i + 1, prompt(12 + static_cast<int>(i % 7), static_cast<int>(i)), 20,
                    [&](wire::Submit& s) {
                      sample_warmly(s, i % 2 == 0 ? 0.7F : 1.3F);
                      s.sampling.seed = i / 2;
                    });
    }
    engine.run_all();
  };
  TinyEngine plain({.slots = 6});
  ask(plain);
  TinyOptions options = with_spec(4);
  options.slots = 6;
  TinyEngine drafted(options);
  ask(drafted);
  for (uint64_t i = 1; i <= 2 * kSeeds; ++i) {
    ASSERT_EQ(plain[i].ids.size(), 20u) << i;
    EXPECT_EQ(drafted[i].ids, plain[i].ids) << i;
  }
  EXPECT_GT(drafted.engine().pulse().work.drafts.guessed.at(3), kSeeds) << "they were drafted";
}

// The end of an answer anywhere inside a window.
TEST(Drafting, F069_EndsInsideAWindow) {
  const std::vector<int32_t> ids = prompt(20, 6);
  const Outcome free = run({}, ids, 24);
  for (size_t at = 1; at < 14; at += 2) {
    std::vector<std::pair<std::string, Edit>> ends;
    ends.emplace_back("an id", [&](wire::Submit& s) { s.stop_ids = {free.ids[at]}; });
    ends.emplace_back("a length", [&](wire::Submit& s) { s.max_tokens = static_cast<int>(at); });
    if (free.bytes.size() > 2 * at + 3) {
      ends.emplace_back("a text",
                        [&](wire::Submit& s) { s.stops = {free.bytes.substr(2 * at, 3)}; });
    }
    for (const auto& [name, end] : ends) {
      const Edit edit = [&](wire::Submit& s) {
        greedy(s);
        end(s);
      };
      LyingSource source;
      source.answers[kSeed] = free.ids;
      const Outcome wanted = run({}, ids, 24, edit),
                    got = run(with_spec(8, false, &source), ids, 24, edit);
      EXPECT_EQ(got.ids, wanted.ids) << name << " at " << at;
      EXPECT_EQ(got.bytes, wanted.bytes) << name << " at " << at;
      EXPECT_EQ(got.finished.reason, wanted.finished.reason) << name << " at " << at;
      EXPECT_EQ(got.finished.usage, wanted.finished.usage) << name << " at " << at;
    }
  }
}

// To the last cell of the context, with windows that would reach beyond it.
TEST(Drafting, F058_TheEndOfTheContext) {
  for (const int n_prompt : {100, 120, 125, 127}) {
    const Outcome wanted = run({}, prompt(n_prompt, 3), 128 - n_prompt);
    for (const bool mtp : {true, false}) {
      LyingSource source;
      source.answers[kSeed] = wanted.ids;
      const Outcome got = run(with_spec(4, mtp, &source), prompt(n_prompt, 3), 128 - n_prompt);
      EXPECT_EQ(got.ids, wanted.ids);
      EXPECT_EQ(got.finished.reason, wire::Reason::kLength);
    }
  }
}

TEST(Drafting, CountsWhatBecameOfTheGuesses) {
  const Outcome wanted = run({}, prompt(20, 5), 41);
  LyingSource source;
  source.answers[kSeed] = wanted.ids;
  source.n_guesses = [](size_t) { return size_t{3}; };
  source.n_right = [](size_t, size_t) { return size_t{1}; };
  const wire::Drafts drafts = run(with_spec(3, false, &source), prompt(20, 5), 41).finished.drafts;
  // The first token comes with the prompt; each pass gives two.
  EXPECT_EQ(drafts.passes, 20u);
  EXPECT_EQ(drafts.guessed, (std::vector<uint64_t>{20, 19, 19}));
  EXPECT_EQ(drafts.right, (std::vector<uint64_t>{20, 0, 0}));
}

// A minimum of certainty ends chains early and changes nothing else.
TEST(Drafting, ChainsEndWhereTheLayerIsUnsure) {
  const Outcome wanted = run({}, prompt(25, 8), 50);
  uint64_t before = ~uint64_t{0};
  for (const float min_p : {0.0F, 0.05F, 0.5F, 1.0F}) {
    TinyOptions options = with_spec(4);
    options.drafts.min_probability = min_p;
    const Outcome got = run(options, prompt(25, 8), 50);
    EXPECT_EQ(got.ids, wanted.ids) << min_p;
    uint64_t n = 0;
    for (const uint64_t guessed : got.finished.drafts.guessed) n += guessed;
    EXPECT_LE(n, before) << min_p;
    before = n;
  }
}

TEST(Drafting, ASimulatedCardGivesTheSame) {
  const Outcome wanted = run({}, prompt(30, 4), 30);
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    TinyOptions options = with_spec(3);
    options.device = seed % 2 == 0 ? "sim:1GiB" : "sim:1GiB,sim:1GiB";
    options.seed = seed;
    EXPECT_EQ(run(options, prompt(30, 4), 30).ids, wanted.ids) << seed;
  }
}

TEST(Lookup, GoesOnAsTheLastTime) {
  LookupIndex index;
  for (const int32_t id : {1, 2, 3, 4, 5, 9, 8, 1, 2, 3, 6, 7, 1, 2, 3}) index.push(id);
  EXPECT_EQ(index.guess(2, 3), (std::vector<int32_t>{6, 7})) << "the latest place counts";
  EXPECT_TRUE(index.guess(2, 4).empty()) << "4 do not agree";
  index.push(4);
  EXPECT_EQ(index.guess(3, 4), (std::vector<int32_t>{5, 9, 8}));
}

TEST(Lookup, ALoopGoesOnForEver) {
  LookupIndex index;
  for (int i = 0; i < 9; ++i) index.push(i % 2);
  EXPECT_EQ(index.guess(5, 3), (std::vector<int32_t>{1, 0, 1, 0, 1}));
  LookupIndex none;
  EXPECT_TRUE(none.guess(3, 3).empty());
}

}  // namespace
}  // namespace strata::engine
