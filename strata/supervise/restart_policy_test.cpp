#include "strata/supervise/restart_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

namespace strata::supervise {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

Death death(Death::How how, int code) {
  Death result;
  result.how = how;
  result.code = code;
  return result;
}

TEST(RestartPolicy, SaysHowInPlainWords) {
  Death loading = death(Death::How::kSignal, SIGKILL);
  loading.phase = "reading weights 43 %";
  EXPECT_EQ(describe(loading),
            "killed by signal 9, probably out of memory, while reading weights 43 %");
  Death exit = death(Death::How::kExit, 71);
  exit.was_ready = true;
  EXPECT_EQ(describe(exit), "left with code 71 (not enough memory), while idle");
}

TEST(RestartPolicy, LastWordsStandBesideTheCode) {
  Death lost = death(Death::How::kExit, 70);
  lost.error = ErrorCode::kDeviceLost;
  lost.detail = "the bus is silent";
  lost.was_ready = lost.had_work = true;
  EXPECT_EQ(describe(lost),
            "left with code 70 (a device was lost: the bus is silent), while answering");
  EXPECT_EQ(describe(death(Death::How::kExit, 127)),
            "left with code 127 (the program could not be started)");
}

TEST(RestartPolicy, OnlyPassingCodesAreTriedAgain) {
  for (int code : {0, 70, 74})
    EXPECT_FALSE(RestartPolicy().on_death(death(Death::How::kExit, code)).give_up) << code;
  for (int code : {1, 64, 65, 66, 69, 71, 127})
    EXPECT_TRUE(RestartPolicy().on_death(death(Death::How::kExit, code)).give_up) << code;
}

TEST(RestartPolicy, OutOfMemoryAfterReadyIsTriedAgain) {
  RestartPolicy policy;
  Death working = death(Death::How::kSignal, SIGSEGV);
  working.was_ready = true;
  EXPECT_FALSE(policy.on_death(working).give_up);
  EXPECT_FALSE(policy.on_death(death(Death::How::kExit, 71)).give_up);
}

TEST(RestartPolicy, BackOffDoublesUpToItsLimit) {
  RestartPolicy policy({.first_delay = milliseconds(100),
                        .longest_delay = milliseconds(350),
                        .healthy_after = milliseconds(1000),
                        .same_deaths = 100});
  const Death crash = death(Death::How::kSignal, SIGSEGV);
  EXPECT_EQ(policy.on_death(crash).delay, milliseconds(100));
  EXPECT_EQ(policy.on_death(crash).delay, milliseconds(200));
  EXPECT_EQ(policy.on_death(crash).delay, milliseconds(350));
  Death later = crash;
  later.was_ready = true;
  later.uptime = milliseconds(1000);
  EXPECT_EQ(policy.on_death(later).delay, milliseconds(100));
}

TEST(RestartPolicy, NobodyWaitsLongerThanTenSecondsForTheNextStart) {
  RestartPolicy policy;
  const Death deaths[] = {death(Death::How::kSignal, SIGSEGV), death(Death::How::kSignal, SIGABRT)};
  milliseconds longest{0};
  for (int i = 0; i < 40; ++i) {
    const auto verdict = policy.on_death(deaths[i % 2]);
    ASSERT_FALSE(verdict.give_up);
    longest = std::max(longest, verdict.delay);
  }
  EXPECT_EQ(longest, milliseconds(10'000));
}

TEST(RestartPolicy, ProgressFiguresDoNotHideThatThePlaceIsTheSame) {
  RestartPolicy policy;
  Death crash = death(Death::How::kSignal, SIGSEGV);
  crash.phase = "reading weights 10 %";
  EXPECT_FALSE(policy.on_death(crash).give_up);
  crash.phase = "reading weights 11 %";
  EXPECT_FALSE(policy.on_death(crash).give_up);
  crash.phase = "reading weights 9 %";
  const auto last = policy.on_death(crash);
  EXPECT_TRUE(last.give_up);
  EXPECT_THAT(last.reason, HasSubstr("3 times in a row"));
}

TEST(RestartPolicy, OtherPlacesAndAnswersStartTheCountAgain) {
  RestartPolicy policy;
  Death crash = death(Death::How::kSignal, SIGSEGV);
  crash.was_ready = crash.had_work = true;
  Death other = death(Death::How::kSignal, SIGABRT);
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(policy.on_death(crash).give_up);
    EXPECT_FALSE(policy.on_death(crash).give_up);
    EXPECT_FALSE(policy.on_death(other).give_up);
  }
  crash.answered = true;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(policy.on_death(crash).give_up);
}

Death hang(const char* where) {
  Death result = death(Death::How::kExit, 70);
  result.hang = where;
  result.was_ready = result.had_work = result.answered = true;
  return result;
}

// Answers in between do not count: the same prompt would hang it again tomorrow.
TEST(RestartPolicy, HangsAtOnePlaceStepDownAndThenEnd) {
  RestartPolicy policy;
  EXPECT_FALSE(policy.on_death(hang("copy of 100 B at layer")).step_down);
  EXPECT_FALSE(policy.on_death(hang("matmul")).step_down) << "another one";
  EXPECT_FALSE(policy.on_death(hang("copy of 100 B at layer")).step_down);
  const auto second = policy.on_death(hang("copy of 200 B at layer"));
  EXPECT_TRUE(second.step_down);
  EXPECT_FALSE(second.give_up);
  // A crash in between is started with less, too.
  EXPECT_TRUE(policy.on_death(death(Death::How::kSignal, SIGSEGV)).step_down);
  EXPECT_FALSE(policy.on_death(hang("matmul")).give_up);
  EXPECT_FALSE(policy.on_death(hang("matmul")).give_up);
  EXPECT_TRUE(policy.on_death(hang("anything")).give_up);
}

TEST(RestartPolicy, HangsFarApartAreNotOne) {
  RestartPolicy policy;
  Death rare = hang("copy");
  rare.uptime = std::chrono::hours(2);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(policy.on_death(rare).step_down);
}

}  // namespace
}  // namespace strata::supervise
