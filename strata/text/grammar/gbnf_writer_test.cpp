#include "strata/text/grammar/gbnf_writer.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "strata/base/error.h"
#include "strata/text/grammar/gbnf.h"
#include "strata/text/grammar/json_text.h"
#include "strata/text/grammar/matcher.h"
#include "strata/text/grammar/regex.h"
#include "strata/text/grammar/test_language.h"

namespace strata::text {
namespace {

bool matches(const std::shared_ptr<const CompiledGrammar>& grammar, const std::string& text) {
  Matcher matcher(grammar);
  return matcher.accept(text) && matcher.may_end();
}

// The written grammar has the texts of the first, and texts that are nearly that as the first has.
void expect_same_language(const Grammar& grammar) {
  const std::string text = to_gbnf(grammar);
  const auto mine = compile(grammar);
  const auto written = compile(parse_gbnf(text));
  std::mt19937 random(7);
  testing::Sentences sentences(grammar, random);
  for (int i = 0; i < 200; ++i) {
    std::string sentence = sentences.make();
    EXPECT_TRUE(matches(written, sentence)) << sentence << "\n" << text;
    if (sentence.empty()) continue;
    sentence[random() % sentence.size()] = static_cast<char>(random() % 128);
    EXPECT_EQ(matches(written, sentence), matches(mine, sentence)) << sentence << "\n" << text;
  }
}

TEST(GbnfWriter, WhatIsWrittenIsReadBackAsTheSameLanguage) {
  for (const char* source :
       {"root ::= \"a\"", "root ::= [a-z]{2,5} \"\\\"\\n\" | [^\\x00-\\x1F]{3}",
        "root ::= list\nlist ::= \"[\" (list (\",\" list)*)? \"]\"",
        "root ::= (\"a\" (\"b\" (\"c\" (\"d\" (\"e\" (\"f\" (\"g\" (\"h\" | \"i\"))*)+)*)?)){2,3})",
        "root ::= \"\xC3\xA9\" [\\u4E00-\\u4E10] \"\xF0\x9F\x98\x80\"?", "root ::= () \"x\"+"})
    expect_same_language(parse_gbnf(source));
  expect_same_language(json_object_grammar());
  expect_same_language(json_value_grammar());
  expect_same_language(regex_grammar("^(a|b)*c{2,7}[^x-z\\d]\\s?$"));
}

// About as long as the source, in any script, and never longer than what is read back.
TEST(GbnfWriter, SizeIsThatOfTheSourceOrRefused) {
  std::string source = "root ::= \"";
  for (int i = 0; i < 1000; ++i) source += "\xE4\xB8\xAD(-)\xC3\xA9\xF0\x9F\x98\x80'";
  source += "\" [\xD0\xB0-\xD1\x8F]";
  const std::string text = to_gbnf(parse_gbnf(source));
  EXPECT_LT(text.size(), source.size() + source.size() / 5);
  expect_same_language(
      parse_gbnf("root ::= \"\\\"\\\\[]-^\\x00\\x7F\\t\" [\\]\\^\\-\\\\[\\x01] [^\\]-\\^]"));
  std::string many;
  for (int i = 0; i < 4000; ++i) many += "\\S";
  try {
    to_gbnf(regex_grammar(many, {.in_json_string = true}));
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUnsupported);
    EXPECT_NE(std::string(e.what()).find("1048576"), std::string::npos) << e.what();
  }
}

TEST(GbnfWriter, RulesOfSeveralRootsAreWritten) {
  Grammar grammar;
  const RuleId first = grammar.add_rule("root"), second = grammar.add_rule("other");
  grammar.define(first, grammar.literal("a"));
  grammar.define(second, grammar.literal("b"));
  const std::string text = to_gbnf(grammar, "x-", std::array{first, second});
  const auto both = compile(parse_gbnf("root ::= " + gbnf_rule(grammar, "x-", first) + " " +
                                       gbnf_rule(grammar, "x-", second) + "\n" + text));
  EXPECT_TRUE(matches(both, "ab"));
}

TEST(GbnfWriter, SharedNodesAreWrittenOnce) {
  Grammar grammar;
  const RuleId root = grammar.add_rule("root");
  GrammarNodeId node = grammar.alternatives({grammar.literal("a"), grammar.literal("b")});
  for (int i = 0; i < 60; ++i) node = grammar.sequence({node, node});
  grammar.define(root, node);
  EXPECT_LT(to_gbnf(grammar).size(), 4000u);
}

TEST(GbnfWriter, SeveralGrammarsStandInOneText) {
  const std::string text = "root ::= a-root | b-root\n" + to_gbnf(regex_grammar("x+"), "a-") +
                           to_gbnf(regex_grammar("y+"), "b-");
  const auto grammar = compile(parse_gbnf(text));
  EXPECT_TRUE(matches(grammar, "xxx"));
  EXPECT_TRUE(matches(grammar, "yy"));
  EXPECT_FALSE(matches(grammar, "xy"));
}

}  // namespace
}  // namespace strata::text
