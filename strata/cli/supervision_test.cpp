#include "strata/cli/supervision.h"

#include <gtest/gtest.h>

namespace strata::cli {
namespace {

TEST(Supervision, TakesWhatTheServerLetsIn) {
  Settings settings;
  EXPECT_GE(supervisor_settings(settings).max_requests, 2 + settings.max_queue);
  settings.batch = 200;
  settings.max_queue = 128;
  EXPECT_GE(supervisor_settings(settings).max_requests, 328);
}

}  // namespace
}  // namespace strata::cli
