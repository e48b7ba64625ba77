#include "strata/engine/stop_matcher.h"

#include <gtest/gtest.h>

namespace strata::engine {
namespace {

std::string run(StopMatcher& matcher, const std::vector<std::string>& pieces) {
  std::string out;
  for (const std::string& piece : pieces) out += matcher.push(piece);
  if (!matcher.matched()) out += matcher.finish();
  return out;
}

TEST(StopMatcher, F035_AStopStringOverSeveralTokensIsNeverSent) {
  StopMatcher matcher({"DEFGHIJ"});
  EXPECT_EQ(matcher.push("ABCDEF"), "ABC");
  EXPECT_EQ(matcher.push("GH"), "");
  EXPECT_EQ(matcher.push("IJK"), "");
  EXPECT_TRUE(matcher.matched());
  EXPECT_EQ(matcher.push("more"), "");
}

TEST(StopMatcher, F035_WhatCannotBecomeAStopStringIsLetGo) {
  StopMatcher matcher({"DEFGHIJ"});
  EXPECT_EQ(matcher.push("xDEF"), "x");
  EXPECT_EQ(matcher.push("DEX"), "DEFDEX");
  EXPECT_FALSE(matcher.matched());
}

TEST(StopMatcher, F035_OverlapsTheEarliestEndCounts) {
  StopMatcher a({"abcd", "bc"});
  EXPECT_EQ(run(a, {"xabcd"}), "xa");
  StopMatcher b({"aab"});
  EXPECT_EQ(run(b, {"a", "a", "a", "b", "z"}), "a");
  StopMatcher c({"the whole answer"});
  EXPECT_EQ(run(c, {"the whole answer"}), "");
}

TEST(StopMatcher, F035_AnyCutGivesTheSameBytes) {
  const std::string text = "one\xC3\xA9 two DEFDEFGHIJ three";
  const std::vector<std::string> stops = {"DEFGHIJ", "\xA9 twx", "three!"};
  StopMatcher whole(stops);
  const std::string wanted = run(whole, {text});
  EXPECT_EQ(wanted, "one\xC3\xA9 two DEF");
  for (size_t i = 1; i < text.size(); ++i) {
    for (size_t j = i; j < text.size(); ++j) {
      StopMatcher cut(stops);
      EXPECT_EQ(run(cut, {text.substr(0, i), text.substr(i, j - i), text.substr(j)}), wanted);
    }
  }
}

TEST(StopMatcher, F036_WithoutAMatchNothingIsLost) {
  StopMatcher matcher({"\n", "Alice:"});
  EXPECT_EQ(matcher.push(" Alice"), " ");
  EXPECT_EQ(matcher.push("!"), "Alice!");
  EXPECT_EQ(matcher.push(" Hi"), " Hi");
  EXPECT_EQ(matcher.finish(), "");
}

}  // namespace
}  // namespace strata::engine
