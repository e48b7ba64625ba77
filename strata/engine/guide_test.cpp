// Grammars, reasoning and log-probabilities through the engine on a tiny model.
#include "strata/engine/guide.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "strata/engine/test_engine.h"
#include "strata/text/grammar/gbnf.h"

namespace strata::engine {
namespace {

using testing::prompt;
using testing::TinyEngine;

// Grammars are compiled beside the steps.
void run_all(TinyEngine& engine, wire::RequestId id) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (engine[id].n_terminal == 0 && std::chrono::steady_clock::now() < deadline) {
    if (!engine.engine().step()) std::this_thread::yield();
  }
}

TEST(Guide, AnswersFollowTheirGrammarAtAnyTemperature) {
  const std::string gbnf =
      "root ::= \"{\" (\"\\\"\" [a-z]{1,3} \"\\\":\" [0-9]+ \",\"){2} \"end}\"";
  TinyEngine engine;
  wire::RequestId id = 0;
  const text::Matcher begin(text::compile(text::parse_gbnf(gbnf)));
  int n_whole = 0;
  for (const float temperature : {0.0f, 1.0f, 3.0f}) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      engine.submit(++id, prompt(5, 1), 100, [&](wire::Submit& submit) {
        submit.grammar = gbnf;
        submit.sampling.temperature = temperature;
        submit.sampling.seed = seed;
      });
      run_all(engine, id);
      ASSERT_TRUE(engine[id].finished) << engine[id].failed->message;
      // Digits may go on to the end of the answer.
      text::Matcher matcher = begin;
      EXPECT_TRUE(matcher.accept(engine[id].bytes)) << engine[id].bytes;
      if (engine[id].finished->reason == wire::Reason::kLength) continue;
      EXPECT_EQ(engine[id].finished->reason, wire::Reason::kStop);
      EXPECT_TRUE(matcher.may_end()) << engine[id].bytes;
      ++n_whole;
    }
  }
  EXPECT_GE(n_whole, 3) << "of " << id;
}

// A word that must come is written as the tokenizer writes it, and what is whole ends by itself.
TEST(Guide, WhatMustComeComes) {
  TinyEngine engine;
  const std::string word = "exactly these words, and no others";
  engine.submit(1, prompt(5, 1), 100,
                [&](wire::Submit& submit) { submit.grammar = "root ::= \"" + word + "\""; });
  run_all(engine, 1);
  ASSERT_TRUE(engine[1].finished);
  EXPECT_EQ(engine[1].bytes, word);
  EXPECT_EQ(engine[1].ids, engine.tokenizer().encode(word, text::SpecialParsing::kNone));
  EXPECT_EQ(engine[1].finished->reason, wire::Reason::kStop);
}

// The others of a step, and the answer itself, do not depend on who is beside it.
TEST(Guide, TheSameAloneAndBesideOthers) {
  const auto ask = [](TinyEngine& engine, wire::RequestId id) {
    engine.submit(id, prompt(7, static_cast<int>(id)), 12, [&](wire::Submit& submit) {
      if (id % 2 == 1) submit.grammar = "root ::= [a-z ]+";
      submit.sampling.temperature = 1;
      submit.sampling.seed = id;
    });
  };
  TinyEngine together({.slots = 4});
  for (wire::RequestId id = 1; id <= 4; ++id) ask(together, id);
  for (wire::RequestId id = 1; id <= 4; ++id) run_all(together, id);
  for (wire::RequestId id = 1; id <= 4; ++id) {
    TinyEngine alone;
    ask(alone, id);
    run_all(alone, id);
    EXPECT_EQ(alone[id].ids, together[id].ids) << id;
    EXPECT_FALSE(alone[id].ids.empty());
  }
}

TEST(Guide, BrokenAndHopelessGrammarsEndTheirRequestAlone) {
  TinyEngine engine;
  engine.submit(1, prompt(5, 1), 8, [](wire::Submit& submit) { submit.grammar = "root ::= ("; });
  engine.submit(2, prompt(5, 1), 8,
                [](wire::Submit& submit) { submit.grammar = "root ::= root \"a\""; });
  engine.submit(3, prompt(5, 1), 8);
  for (wire::RequestId id = 1; id <= 3; ++id) run_all(engine, id);
  ASSERT_TRUE(engine[1].failed);
  EXPECT_EQ(engine[1].failed->code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(engine[2].failed);
  EXPECT_EQ(engine[2].failed->code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(engine[3].finished);
}

// An empty mask is the grammar's fault; logits that are no numbers are the engine's, which counts
// how often that happens.
TEST(Guide, BrokenLogitsAreNoFaultOfTheGrammar) {
  TinyEngine engine;
  engine.submit(1, prompt(5, 1), 8, [](wire::Submit& submit) {
    submit.grammar = "root ::= [a-z]+";
    for (int32_t id = 0; id < 512; ++id)
      submit.sampling.logit_bias.push_back({.id = id, .bias = -INFINITY});
  });
  run_all(engine, 1);
  ASSERT_TRUE(engine[1].failed);
  EXPECT_EQ(engine[1].failed->code, ErrorCode::kInternal);
  EXPECT_NE(engine[1].failed->message.find("finite"), std::string::npos);
}

// F-037: of the model's own logits, whatever bends the choice; the token that was chosen is there.
TEST(Guide, F037_LogprobsComeWithEachToken) {
  TinyEngine engine;
  for (const float temperature : {0.0f, 1.0f}) {
    const wire::RequestId id = temperature > 0 ? 2 : 1;
    engine.submit(id, prompt(9, 3), 10, [&](wire::Submit& submit) {
      submit.n_top_logprobs = 3;
      submit.sampling.temperature = temperature;
      submit.sampling.seed = 5;
    });
    run_all(engine, id);
    const auto& answer = engine[id];
    ASSERT_EQ(answer.logprobs.size(), answer.ids.size());
    for (size_t i = 0; i < answer.ids.size(); ++i) {
      const wire::TokenLogprobs& each = answer.logprobs[i];
      ASSERT_EQ(each.top.size(), 3u);
      EXPECT_LE(each.top[0].logprob, 0);
      EXPECT_GE(each.top[0].logprob, each.top[1].logprob);
      EXPECT_LE(each.chosen, each.top[0].logprob);
      if (temperature == 0) {
        EXPECT_EQ(each.top[0].id, answer.ids[i]);
      }
    }
  }
  engine.submit(3, prompt(9, 3), 10);
  run_all(engine, 3);
  EXPECT_TRUE(engine[3].logprobs.empty());
  EXPECT_EQ(engine[3].ids, engine[1].ids);
}

// F-027: the guide alone, fed by hand.
TEST(Guide, F027_ABudgetClosesTheReasoningOnce) {
  TinyEngine engine;
  const text::Tokenizer& tokenizer = engine.tokenizer();
  wire::Submit submit;
  submit.reasoning = {true, "<think>", "</think>", 8,
                      tokenizer.encode("enough\n</think>\n\n", text::SpecialParsing::kAllow)};
  const std::vector<int32_t> close = tokenizer.encode("</think>", text::SpecialParsing::kAllow);
  const int32_t word = tokenizer.encode("a", text::SpecialParsing::kNone).at(0);
  const auto after = [&](int n_words, bool closes) {
    Guide guide(submit, nullptr, tokenizer);
    for (int i = 0; i < n_words; ++i) EXPECT_TRUE(guide.push(word));
    for (const int32_t id : closes ? close : std::vector<int32_t>()) EXPECT_TRUE(guide.push(id));
    return guide;
  };
  EXPECT_FALSE(after(7, false).limits());
  // Closed in time: the budget is disarmed.
  Guide closed = after(5, true);
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(closed.limits());
    EXPECT_TRUE(closed.push(word));
  }
  EXPECT_EQ(closed.n_reasoning(), 5 + static_cast<int>(close.size()));
  // Used up: what wraps up must come, once.
  Guide guide = after(8, false);
  EXPECT_EQ(guide.forced(), submit.reasoning->wrap_up);
  EXPECT_FALSE(guide.push(word));
  for (const int32_t id : submit.reasoning->wrap_up) {
    EXPECT_TRUE(guide.limits());
    EXPECT_TRUE(guide.push(id));
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(guide.limits());
    EXPECT_TRUE(guide.push(word));
  }
  // And when the answer itself opens it.
  submit.reasoning->open = false;
  Guide opens(submit, nullptr, tokenizer);
  for (const int32_t id : tokenizer.encode("\n<think>", text::SpecialParsing::kAllow))
    opens.push(id);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(opens.push(word));
  EXPECT_TRUE(opens.limits());
}

TEST(Guide, F027_InAnAnswer) {
  TinyEngine engine;
  const std::vector<int32_t> wrap_up =
      engine.tokenizer().encode("enough</think>", text::SpecialParsing::kAllow);
  for (const int budget : {0, 3}) {
    const wire::RequestId id = static_cast<wire::RequestId>(budget) + 1;
    engine.submit(id, prompt(5, 1), 30, [&](wire::Submit& submit) {
      submit.reasoning = {true, "<think>", "</think>", budget, wrap_up};
      submit.grammar = "root ::= \"yes\"";
    });
    run_all(engine, id);
    ASSERT_TRUE(engine[id].finished);
    EXPECT_TRUE(engine[id].bytes.ends_with("enough</think>yes")) << engine[id].bytes;
    EXPECT_EQ(engine[id].finished->usage.reasoning_tokens,
              budget + static_cast<int>(wrap_up.size()));
  }
}

// F-037: with guesses the same tokens and the same log probabilities, also where a grammar has
// masks; and what must come takes few passes.
TEST(Guide, F037_TheSameWithGuesses) {
  const std::string gbnf = "root ::= \"the first words are given; \" [a-d ]{6,9} \" and the last\"";
  TinyEngine plain, guessing({.drafts = {.most = 4, .automatic = false}});
  const auto ask = [&](TinyEngine& engine, wire::RequestId id) {
    engine.submit(id, prompt(6, 2), 80, [&](wire::Submit& submit) {
      if (id % 2 == 1) submit.grammar = gbnf;
      submit.n_top_logprobs = 2;
      submit.sampling.temperature = id > 2 ? 1.0f : 0.0f;
      submit.sampling.seed = id;
    });
    run_all(engine, id);
    EXPECT_TRUE(engine[id].finished);
  };
  for (wire::RequestId id = 1; id <= 4; ++id) {
    ask(plain, id);
    ask(guessing, id);
    EXPECT_EQ(plain[id].ids, guessing[id].ids) << id;
    EXPECT_EQ(plain[id].logprobs, guessing[id].logprobs) << id;
    if (id % 2 == 0) continue;
    EXPECT_LT(guessing[id].finished->drafts.passes, plain[id].ids.size() * 2 / 3) << id;
  }
}

// What must come is guessed, also beside others that draft: such tokens come a whole window a step,
// and the answers are those of an engine that does one at a time and alone.
TEST(Guide, ForcedTokensNeedNoStepsOfTheirOwnInABatch) {
  constexpr int kWindow = 5;
  const std::string words = "these words are all that may be said here, and then nothing more";
  TinyEngine together({.slots = 3, .drafts = {.most = kWindow - 1, .automatic = false}});
  const auto ask = [&](TinyEngine& engine, wire::RequestId id) {
    engine.submit(id, prompt(6, static_cast<int>(id)), 60, [&](wire::Submit& submit) {
      if (id == 1) submit.grammar = "root ::= \"" + words + "\"";
      if (id == 2) submit.grammar = "root ::= [a-f ]{9} \"" + words + "\" [a-f]";
      submit.sampling.temperature = 1;
      submit.sampling.seed = id;
    });
  };
  for (wire::RequestId id = 1; id <= 3; ++id) ask(together, id);
  for (wire::RequestId id = 1; id <= 3; ++id) run_all(together, id);
  for (wire::RequestId id = 1; id <= 3; ++id) {
    TinyEngine alone;
    ask(alone, id);
    run_all(alone, id);
    ASSERT_TRUE(together[id].finished);
    EXPECT_EQ(alone[id].ids, together[id].ids) << id;
  }
  EXPECT_EQ(together[1].bytes, words);
  // One step more: the first token comes with the prompt, and the last window need not be full.
  EXPECT_LE(together[1].finished->drafts.passes, together[1].ids.size() / kWindow + 1);
}

}  // namespace
}  // namespace strata::engine
