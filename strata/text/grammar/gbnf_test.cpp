#include "strata/text/grammar/gbnf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/grammar/compiled_grammar.h"
#include "strata/text/grammar/test_language.h"

namespace strata::text {
namespace {

using ::testing::HasSubstr;

bool matches(std::string_view gbnf, std::string_view text) {
  const Grammar grammar = parse_gbnf(gbnf);
  const bool slow = testing::SlowLanguage(grammar).contains(text);
  EXPECT_EQ(testing::matches(Matcher(compile(grammar)), text), slow) << gbnf << " on " << text;
  return slow;
}

void expect_error(std::string_view gbnf, std::string_view message,
                  ErrorCode code = ErrorCode::kInvalidArgument, const GrammarLimits& limits = {}) {
  try {
    compile(parse_gbnf(gbnf, limits));
    ADD_FAILURE() << "no error for " << gbnf;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(message)) << gbnf;
  }
}

TEST(Gbnf, literals_classes_groups_and_repetitions) {
  EXPECT_TRUE(matches("root ::= \"ab\" [c-e]* (\"x\" | \"y\")+ \"z\"?", "abcdexyxz"));
  EXPECT_TRUE(matches("root ::= \"ab\" [c-e]* (\"x\" | \"y\")+ \"z\"?", "aby"));
  EXPECT_FALSE(matches("root ::= \"ab\" [c-e]* (\"x\" | \"y\")+ \"z\"?", "abz"));
  EXPECT_TRUE(matches("root ::= [^a-z\\]]{2}", "A1"));
  EXPECT_FALSE(matches("root ::= [^a-z\\]]{2}", "A]"));
  EXPECT_TRUE(matches("root ::= [a-]{3,}", "a-a-"));
  EXPECT_FALSE(matches("root ::= [a-]{3,}", "a-"));
  EXPECT_TRUE(matches("root ::= \"ab\"{1,2}", "abab"));
  EXPECT_FALSE(matches("root ::= \"ab\"{1,2}", "ababab"));
  EXPECT_TRUE(matches("root ::= . . .", "a\n\xE4\xB8\xAD"));
  EXPECT_FALSE(matches("root ::= .", "\xE4\xB8"));
  EXPECT_TRUE(matches("root ::= \"\" | \"x\"", ""));
  EXPECT_TRUE(matches("root ::= \"x\"{0} \"y\"", "y"));
  EXPECT_FALSE(matches("root ::= [] | \"y\"", "x"));
}

TEST(Gbnf, escapes) {
  EXPECT_TRUE(matches(R"(root ::= "\n\r\t\\\"\[\]\x41\u00e9\U0001F600")",
                      "\n\r\t\\\"[]A\xC3\xA9\xF0\x9F\x98\x80"));
  EXPECT_TRUE(matches(R"(root ::= [\x00-\x1F\-\^]+)", std::string_view("\0\x1F-^", 4)));
  EXPECT_TRUE(matches("root ::= \"\xC3\xA9\" [\xC3\xA0-\xC3\xBF]", "\xC3\xA9\xC3\xAE"));
}

TEST(Gbnf, lines_and_comments) {
  const char* const grammar =
      "# a comment\r\n"
      "root ::= a |   # behind the bar the line may end\r\n"
      "  b\r\n"
      "\n"
      "a ::= (\n  \"x\"  # inside too\n  \"y\"\n)*\n"
      "b ::=\n  \"z\"\n"
      "  | \"w\"  # and a line may begin with one\n";
  EXPECT_TRUE(matches(grammar, "xyxy"));
  EXPECT_TRUE(matches(grammar, "z"));
  EXPECT_TRUE(matches(grammar, "w"));
  EXPECT_FALSE(matches(grammar, "zw"));
}

TEST(Gbnf, recursion) {
  const char* const grammar = "root ::= \"(\" root \")\" root | \"\"";
  EXPECT_TRUE(matches(grammar, "(()())()"));
  EXPECT_FALSE(matches(grammar, "(()"));
  EXPECT_FALSE(matches(grammar, "())"));
  EXPECT_TRUE(matches("root ::= [ab] root | \"c\"", "ababbc"));
}

TEST(Gbnf, errors_name_the_place) {
  expect_error("root ::= \"a", "line 1 column 10: this quotation mark is not closed");
  expect_error("root ::= \"a\"\nb ::= [a", "line 2 column 7: this bracket is not closed");
  expect_error("root ::= (\"a\"", "line 1 column 10: this parenthesis is not closed");
  expect_error("root ::= \"a\")", "line 1 column 13");
  expect_error("root = \"a\"", "expected ::=");
  expect_error("root ::= a\n", "line 1 column 10: rule a is used and not defined");
  expect_error("a ::= \"a\"\n", "no rule root");
  expect_error("", "no rule root");
  expect_error("root ::= \"a\"\nroot ::= \"b\"", "line 2 column 1: rule root is defined already");
  expect_error("root ::= [z-a]", "ends before it begins");
  expect_error("root ::= \"\\q\"", "escape");
  expect_error("root ::= \"\\x4\"", "2 hexadecimal digits");
  expect_error("root ::= \"\\uD800\"", "no character");
  expect_error("root ::= \"\\U00110000\"", "no character");
  expect_error("root ::= \"a\"{3,2}", "below the first");
  expect_error("root ::= \"a\"{", "expected a number");
  expect_error("root ::= \"a\"{1", "expected {m}");
  expect_error("root ::= \"a\" \xFF", "not UTF-8");
  expect_error(std::string_view("root ::= \"\0\"", 12), "zero byte");
  expect_error("root ::= <think>", "tokens", ErrorCode::kUnsupported);
  expect_error("root ::= *", "expected a part");
}

TEST(Gbnf, left_recursion_is_refused_with_rule_and_line) {
  expect_error("root ::= a\na ::= a \"x\" | \"y\"", "rule a (line 2) is left-recursive: a -> a");
  expect_error("root ::= \"x\"? root | \"y\"", "rule root (line 1) is left-recursive");
  expect_error("root ::= a\n\na ::= b | \"x\"\nb ::= \"\" c\nc ::= \"q\"* a", "left-recursive");
  expect_error("root ::= (root \"x\")*", "left-recursive");
  expect_error("root ::= \"x\"\nunused ::= unused", "rule unused (line 2)");
  EXPECT_TRUE(matches("root ::= \"x\" root | \"y\"", "xxy"));
}

TEST(Gbnf, a_root_without_end_is_refused) {
  expect_error("root ::= \"x\" root", "matches no text that ends");
  expect_error("root ::= \"x\" a\na ::= []", "matches no text that ends");
  EXPECT_TRUE(matches("root ::= \"x\" | \"y\" a\na ::= \"z\" a", "x"));
  EXPECT_FALSE(testing::matches(
      Matcher(compile(parse_gbnf("root ::= \"x\" | \"y\" a\na ::= \"z\" a"))), "y"));
}

TEST(Gbnf, limits) {
  std::string deep = "root ::= ";
  for (int i = 0; i < 100000; ++i) deep += '(';
  expect_error(deep, "deeper", ErrorCode::kUnsupported);
  expect_error("root ::= \"a\"{2000000}", "above 1000000", ErrorCode::kUnsupported);
  expect_error("root ::= \"a\"{99999999999999999999}", "above 1000000", ErrorCode::kUnsupported);
  expect_error("root ::= \"aaaa\"", "above the limit of 5", ErrorCode::kUnsupported,
               {.max_source_bytes = 5});
  expect_error("root ::= a b\na ::= \"x\"\nb ::= \"y\"", "more than 2 rules",
               ErrorCode::kUnsupported, {.max_rules = 2});
  expect_error("root ::= [a] [b] [c] [d] [e]", "more than 10 parts", ErrorCode::kUnsupported,
               {.max_size = 10});
  // Small sources of large automata.
  expect_error("root ::= ((([a-y]{190} \"z\"){250} [b-y]){250} \"x\"){250}", "",
               ErrorCode::kUnsupported, {.max_states = 500});
  expect_error("root ::= [ab]* [a] [ab]{400} | [ab]* [b] [ab]{450} [c]", "",
               ErrorCode::kUnsupported, {.max_table_entries = 1000});
  std::string repeated = "root ::= \"a\"";
  for (int i = 0; i < 300; ++i) repeated += '*';
  expect_error(repeated, "nests deeper", ErrorCode::kUnsupported);
}

TEST(Gbnf, doubling_rules_stay_small) {
  std::string text = "root ::= r0\n";
  for (int i = 0; i < 60; ++i) text += format("r{} ::= r{} r{}\n", i, i + 1, i + 1);
  text += "r60 ::= \"a\" | \"b\"\n";
  const auto grammar = compile(parse_gbnf(text));
  EXPECT_LT(grammar->n_bytes(), size_t{4} << 20);
  Matcher matcher(grammar);
  EXPECT_TRUE(matcher.accept(std::string(5000, 'a')));
  EXPECT_FALSE(matcher.may_end());
  EXPECT_FALSE(matcher.accept("c"));
}

TEST(Gbnf, random_grammars_read_back) {
  std::mt19937 random(3);
  int n_compiled = 0;
  for (int round = 0; round < 400; ++round) {
    testing::RandomGrammar maker(random);
    const Grammar grammar = maker.make();
    const Grammar again = parse_gbnf(testing::gbnf_of(grammar));
    try {
      compile(grammar);
    } catch (const Error&) {
      EXPECT_THROW(compile(again), Error);
      continue;
    }
    ++n_compiled;
    testing::SlowLanguage one(grammar);
    testing::SlowLanguage other(again);
    for (int i = 0; i < 10; ++i) {
      const std::string sentence = testing::Sentences(grammar, random).make();
      ASSERT_TRUE(other.contains(sentence)) << testing::gbnf_of(grammar);
      const std::string text = maker.text(6);
      ASSERT_EQ(one.contains(text), other.contains(text)) << testing::gbnf_of(grammar);
    }
  }
  EXPECT_GT(n_compiled, 100);
}

}  // namespace
}  // namespace strata::text
