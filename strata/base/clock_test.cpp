#include "strata/base/clock.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

using std::chrono::milliseconds;

TEST(Clock, TheSteadyOneDoesNotGoBack) {
  const Clock& clock = steady_clock();
  const Clock::TimePoint before = clock.now();
  EXPECT_GE(clock.now(), before);
}

TEST(Clock, TheManualOneMovesWhenTold) {
  ManualClock clock;
  const Clock::TimePoint begin = clock.now();
  EXPECT_GT(begin, Clock::TimePoint());
  EXPECT_EQ(clock.now(), begin);
  clock.advance(milliseconds(250));
  EXPECT_EQ(clock.now() - begin, milliseconds(250));
}

}  // namespace
}  // namespace strata
