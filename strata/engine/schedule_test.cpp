#include "strata/engine/schedule.h"

#include <gtest/gtest.h>

#include <numeric>

namespace strata::engine {
namespace {

std::unique_ptr<Request> reading(wire::RequestId id, size_t n_prompt, size_t n_read = 0) {
  wire::Submit submit;
  submit.ids.assign(n_prompt, 1);
  submit.max_tokens = 100;
  auto request = std::make_unique<Request>(id, std::move(submit), 1, Clock::TimePoint());
  request->n_read = n_read;
  return request;
}

std::unique_ptr<Request> answering(wire::RequestId id, size_t n_guesses) {
  auto request = reading(id, 5, 5);
  request->answer = {7};
  request->drafting.guesses.assign(n_guesses, 3);
  return request;
}

std::vector<size_t> rows_of(std::span<const std::unique_ptr<Request>> running, size_t room,
                            size_t prompt_rows) {
  std::vector<size_t> rows(running.size());
  for (const StepPart& part : plan_step(running, room, prompt_rows)) {
    for (size_t i = 0; i < running.size(); ++i) {
      if (running[i].get() == part.request) rows[i] = part.ids.size();
    }
  }
  return rows;
}

using Rows = std::vector<size_t>;

TEST(PlanStep, WindowsFirstThenPrompts) {
  std::vector<std::unique_ptr<Request>> running;
  running.push_back(reading(1, 100));
  running.push_back(answering(2, 3));
  running.push_back(answering(3, 0));
  EXPECT_EQ(rows_of(running, 64, 64), (Rows{59, 4, 1}));
  EXPECT_EQ(rows_of(running, 64, 20), (Rows{20, 4, 1}));
  EXPECT_EQ(rows_of(running, 64, 0), (Rows{0, 4, 1}));
}

TEST(PlanStep, GuessesTakeNobodysRow) {
  std::vector<std::unique_ptr<Request>> running;
  for (wire::RequestId id = 1; id <= 3; ++id) running.push_back(answering(id, 8));
  EXPECT_EQ(rows_of(running, 3, 3), (Rows{1, 1, 1}));
  EXPECT_EQ(rows_of(running, 6, 6), (Rows{4, 1, 1}));
  EXPECT_EQ(rows_of(running, 20, 20), (Rows{9, 9, 2}));
}

TEST(PlanStep, AShortPromptDoesNotWaitForALongOne) {
  std::vector<std::unique_ptr<Request>> running;
  running.push_back(reading(1, 20000));
  running.push_back(reading(2, 10));
  running.push_back(reading(3, 3000));
  EXPECT_EQ(rows_of(running, 64, 64), (Rows{32, 10, 22}));
  running[0]->n_read = 19999;
  EXPECT_EQ(rows_of(running, 64, 64), (Rows{1, 10, 53}));
}

// A long prompt beside answers, on a machine where a prompt row costs a fifth of a step.
TEST(PromptPace, AnswersKeepMostOfTheirSpeed) {
  for (const int n_answers : {1, 5}) {
    for (const double step : {2.0, 100.0, 900.0}) {
      StepCosts costs;
      costs.add_step(n_answers, step);
      PromptPace pace;
      double ms = 0, longest = 0;
      int steps = 0, read = 0;
      while (read < 20000) {
        const auto n = static_cast<int>(pace.rows(512, true));
        const double time = step + 0.2 * step * n;
        pace.add(n_answers, n, time, costs);
        ms += time;
        longest = std::max(longest, time);
        read += n;
        ++steps;
      }
      EXPECT_GE(steps * step / ms, 0.69) << step;
      EXPECT_LE(longest, step + 0.2 * step * 512);
      EXPECT_LE(steps * step / ms, 0.8) << step << ": the prompt gets its part, too";
    }
  }
}

TEST(PromptPace, AloneAPromptHasTheWholeStep) {
  PromptPace pace;
  EXPECT_EQ(pace.rows(512, false), 512u);
  StepCosts costs;
  costs.add_step(1, 10);
  pace.add(1, 512, 2000, costs);
  EXPECT_EQ(pace.rows(512, true), 0u);
  EXPECT_EQ(pace.rows(512, false), 512u);
}

}  // namespace
}  // namespace strata::engine
