#include "strata/engine/draft/depth.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace strata::engine {
namespace {

// A machine on which a row more costs a third of a step, and the draft layer a sixth.
double step_ms(int rows) { return 1 + 0.33 * (rows - 1); }
constexpr double kFirstDraft = 0.17, kNextDraft = 0.13;
constexpr int kMost = 8;

StepCosts measured() {
  StepCosts costs;
  for (const int rows : {1, 2, 3, 5, 9}) costs.add_step(rows, step_ms(rows));
  costs.add_first_draft(kFirstDraft);
  costs.add_next_draft(kNextDraft);
  return costs;
}

// Milliseconds of an answer of n tokens whose guesses are right with this probability.
double answer_ms(int n_tokens, double right, Experience& everywhere, std::mt19937& random,
                 const std::function<double(int)>& cost = step_ms) {
  const StepCosts costs = measured();
  DepthChoice choice;
  double ms = 0;
  for (int done = 0; done < n_tokens;) {
    const int n = choice.choose(costs, everywhere, kMost, {}, true);
    int n_right = 0;
    while (n_right < n && std::bernoulli_distribution(right)(random)) ++n_right;
    const double time = cost(1 + n) + costs.draft(n);
    if (n > 0) {
      choice.add(n, n_right);
      everywhere.acceptance.add(n, n_right);
    }
    everywhere.time_ms += time;
    ms += time;
    done += 1 + n_right;
  }
  return ms;
}

TEST(DepthChoice, TextThatIsGuessedBadlyCostsNextToNothing) {
  std::mt19937 random(1);
  for (const double right : {0.0, 0.1, 0.25}) {
    Experience everywhere;
    // The first answer pays for learning, the ones after it know.
    const double first = answer_ms(256, right, everywhere, random);
    EXPECT_LE(first, 256 * 1.03) << right;
    double later = 0;
    for (int i = 0; i < 10; ++i) later += answer_ms(128, right, everywhere, random);
    EXPECT_LE(later, 10 * 128 * 1.02) << right;
  }
}

TEST(DepthChoice, TextThatIsGuessedWellGetsNearlyAllOfIt) {
  std::mt19937 random(2);
  for (const double right : {0.8, 0.9, 0.97}) {
    double best = 1e9;
    for (int n = 0; n <= kMost; ++n) {
      double tokens = 1, chance = 1;
      for (int i = 0; i < n; ++i) tokens += chance *= right;
      best = std::min(best, (step_ms(1 + n) + measured().draft(n)) / tokens);
    }
    Experience everywhere;
    double ms = 0;
    for (int i = 0; i < 20; ++i) ms += answer_ms(256, right, everywhere, random);
    EXPECT_LE(ms / (20 * 256), best * 1.06) << right;
  }
}

// Prose that turns into code is found out, though the beginning said no.
TEST(DepthChoice, WhatHasGivenUpTriesAgain) {
  std::mt19937 random(3);
  const StepCosts costs = measured();
  Experience everywhere;
  DepthChoice choice;
  int n_last = 0;
  for (int step = 0; step < 4000; ++step) {
    const bool code = step >= 1000;
    const int n = choice.choose(costs, everywhere, kMost, {}, true);
    int n_right = 0;
    while (n_right < n && std::bernoulli_distribution(code ? 0.95 : 0.02)(random)) ++n_right;
    if (n > 0) choice.add(n, n_right), everywhere.acceptance.add(n, n_right);
    everywhere.time_ms += step_ms(1 + n) + costs.draft(n);
    if (step >= 3000) n_last += n;
  }
  EXPECT_GT(n_last, 2000);
}

// In a batch a row more is a smaller part of the step, or a larger one.
TEST(DepthChoice, TheOthersOfAStepCount) {
  StepCosts costs;
  for (int rows = 1; rows <= 8; ++rows) costs.add_step(rows, 1 + 0.05 * (rows - 1));
  for (int rows = 9; rows <= 20; ++rows) costs.add_step(rows, 1.35 + 1.0 * (rows - 8));
  Experience everywhere;
  for (int i = 0; i < 200; ++i) everywhere.acceptance.add(3, i % 2 == 0 ? 3 : 1);
  DepthChoice choice;
  EXPECT_GE(choice.choose(costs, everywhere, kMost, {.rows = 1, .tokens = 1}, false), 3);
  EXPECT_EQ(choice.choose(costs, everywhere, kMost, {.rows = 8, .tokens = 8}, false), 0);
}

TEST(StepCosts, BetweenAndBeyondWhatWasMeasured) {
  StepCosts costs;
  EXPECT_FALSE(costs.known());
  costs.add_step(1, 10);
  EXPECT_EQ(costs.step(1), 10);
  EXPECT_GT(costs.step(2), 10);
  costs.add_step(5, 18);
  EXPECT_EQ(costs.step(3), 14);
  EXPECT_EQ(costs.step(7), 22);
  // One disturbed step among many does not count for much.
  for (int i = 0; i < 20; ++i) costs.add_step(1, 10);
  costs.add_step(1, 10000);
  EXPECT_LT(costs.step(1), 12);
}

// While the machine is busy one size is measured; the others must look neither cheap then nor dear
// afterwards.
TEST(StepCosts, ABusyMachineChangesAllSizes) {
  StepCosts costs;
  costs.set_step(1, 10), costs.set_step(2, 14), costs.set_step(3, 18);
  costs.set_drafts(2, 1);
  for (int i = 0; i < 200; ++i) costs.add_step(2, 28);
  EXPECT_NEAR(costs.step(2), 28, 1);
  EXPECT_GT(costs.step(3), 30);
  EXPECT_GT(costs.draft(1), 3);
  for (int i = 0; i < 200; ++i) costs.add_step(2, 14);
  EXPECT_NEAR(costs.step(2), 14, 0.5);
  EXPECT_NEAR(costs.step(3), 18, 1);
  EXPECT_NEAR(costs.draft(2), 3, 0.3);
}

TEST(StepCosts, WhatSizesCostAgainstEachOtherIsLearned) {
  StepCosts costs;
  costs.set_step(1, 10), costs.set_step(3, 18);
  for (int i = 0; i < 600; ++i) costs.add_step(i % 2 == 0 ? 1 : 3, i % 2 == 0 ? 10 : 25);
  EXPECT_NEAR(costs.step(3) / costs.step(1), 2.5, 0.15);
}

TEST(StepCosts, ALargerStepIsNeverCheaper) {
  StepCosts costs;
  costs.set_step(1, 10), costs.set_step(2, 30), costs.set_step(4, 20);
  for (int rows = 1; rows < 9; ++rows) EXPECT_LE(costs.step(rows), costs.step(rows + 1)) << rows;
  EXPECT_EQ(costs.step(2), 20);
}

}  // namespace
}  // namespace strata::engine
