#include "strata/base/text.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

TEST(Text, LowerChangesLettersOfAsciiAlone) {
  EXPECT_EQ(lower("AZ az 09 [\xC3\x84"), "az az 09 [\xC3\x84");
  EXPECT_EQ(lower(""), "");
}

TEST(Text, TrimmedLosesWhiteSpaceAtBothEnds) {
  EXPECT_EQ(trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(trimmed("\n \t"), "");
  EXPECT_EQ(trimmed(""), "");
}

}  // namespace
}  // namespace strata
