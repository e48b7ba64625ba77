#include "strata/text/reasoning.h"

#include <gtest/gtest.h>

#include <string>

namespace strata::text {
namespace {

// Joined parts when the text comes in pieces of `size` bytes.
ReasoningSplit::Part split(const std::string& text, bool open, size_t size) {
  ReasoningSplit split(open);
  ReasoningSplit::Part all;
  const auto add = [&](const ReasoningSplit::Part& part) {
    all.reasoning += part.reasoning;
    all.content += part.content;
  };
  for (size_t at = 0; at < text.size(); at += size) add(split.append(text.substr(at, size)));
  add(split.finish());
  return all;
}

TEST(ReasoningSplit, PartsDoNotDependOnTheCuts) {
  struct Case {
    std::string text;
    bool open;
    std::string reasoning, content;
  };
  const std::vector<Case> cases = {
      {"plain answer", false, "", "plain answer"},
      {"  spaced answer \n", false, "", "  spaced answer \n"},
      {"<think>\nwhy\n</think>\n\nso", false, "why", "so"},
      {"\n<think>why</think>so", false, "why", "so"},
      {"<thinking>no tag", false, "", "<thinking>no tag"},
      {"<", false, "", "<"},
      {"a <think>late</think>", false, "", "a <think>late</think>"},
      {"why\n</think>\n\nso", true, "why", "so"},
      {"\n\nwhy  not </thin </think> so </think> x", true, "why  not </thin", "so </think> x"},
      {"never closes \n", true, "never closes \n", ""},
      {"never closes </thi", true, "never closes </thi", ""},
      {"</think>so", true, "", "so"},
      {"\n</think>\n", true, "", ""},
      {"", true, "", ""},
      {"", false, "", ""},
  };
  for (const Case& each : cases) {
    for (const size_t size : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{1000}}) {
      const auto part = split(each.text, each.open, size);
      EXPECT_EQ(part.reasoning, each.reasoning) << each.text << " by " << size;
      EXPECT_EQ(part.content, each.content) << each.text << " by " << size;
    }
  }
}

TEST(ReasoningSplit, HoldsBackNoMoreThanItMust) {
  ReasoningSplit split(true);
  EXPECT_EQ(split.append("abc <").reasoning, "abc");
  EXPECT_EQ(split.append("b").reasoning, " <b");
  EXPECT_EQ(split.append("</think>").reasoning, "");
  EXPECT_EQ(split.append("\n").content, "");
  EXPECT_EQ(split.append("x </think>").content, "x </think>");
}

}  // namespace
}  // namespace strata::text
