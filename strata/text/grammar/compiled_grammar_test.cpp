#include "strata/text/grammar/compiled_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/grammar/gbnf.h"
#include "strata/text/grammar/json_text.h"
#include "strata/text/grammar/matcher.h"
#include "strata/text/grammar/regex.h"
#include "strata/text/grammar/test_language.h"

namespace strata::text {
namespace {

TEST(CompiledGrammar, deterministic_where_rules_are_copied) {
  const auto grammar = compile(
      parse_gbnf("root ::= \"[\" item (\",\" item)* \"]\"\nitem ::= word | number | \"a\" number\n"
                 "word ::= letter+\nletter ::= [a-z]\nnumber ::= [0-9]+\n"));
  Matcher matcher(grammar);
  for (const char c : std::string("[abc,12,a3,x]")) {
    ASSERT_TRUE(matcher.accept({&c, 1}));
    EXPECT_EQ(matcher.configurations().size(), 1u);
    EXPECT_EQ(matcher.configurations()[0].stack, StackPool::kBottom);
  }
  EXPECT_TRUE(matcher.may_end());
}

TEST(CompiledGrammar, json_is_followed_on_one_stack) {
  Matcher matcher(compile(json_value_grammar()));
  for (const char c : std::string(R"({"a": [1, -2.5e3, "x\u00e9\n"], "b": {"c": [[], {}]}})")) {
    ASSERT_TRUE(matcher.accept({&c, 1}));
    EXPECT_EQ(matcher.configurations().size(), 1u);
  }
  EXPECT_TRUE(matcher.may_end());
}

TEST(CompiledGrammar, compiling_is_bounded) {
  // Each of these asks for much with few bytes: an answer or an error, and soon.
  const std::string sources[] = {
      "root ::= ([ab]* [a] [ab]{60}){60}",
      "root ::= (([a-z]{0,200}){0,200}){0,200}",
      "root ::= ((\"a\"? \"b\"?){1000} [a-z]?){1000}",
      "root ::= ([a-z]? [b-y]? [c-x]? [d-w]?){5000}",
      "root ::= [\\U00000000-\\U0010FFFF]{100000}",
      "root ::= ((((((([ab]*)*)*)*)*)*)*)* \"x\"",
      "root ::= \"a\" root \"a\" | \"a\" root \"b\" | \"a\" root? \"c\" root? | \"d\"",
  };
  for (const std::string& source : sources) {
    const auto start = std::chrono::steady_clock::now();
    try {
      const auto grammar = compile(parse_gbnf(source));
      EXPECT_LT(grammar->n_bytes(), size_t{100} << 20) << source;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUnsupported) << source;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << source;
  }
}

TEST(CompiledGrammar, a_long_chain_of_rules) {
  std::string text = "root ::= r0\n";
  for (int i = 0; i < 3000; ++i) text += format("r{} ::= r{} | \"{}\"\n", i, i + 1, i % 10);
  text += "r3000 ::= \"x\"\n";
  const auto grammar = compile(parse_gbnf(text));
  EXPECT_TRUE(testing::matches(Matcher(grammar), "x"));
  EXPECT_TRUE(testing::matches(Matcher(grammar), "7"));
  EXPECT_FALSE(testing::matches(Matcher(grammar), "y"));
}

TEST(CompiledGrammar, ambiguous_recursion) {
  const Grammar grammar =
      parse_gbnf("root ::= \"a\" root \"a\" | \"a\" root \"b\" | \"a\" root? \"c\" root? | \"d\"");
  testing::SlowLanguage language(grammar);
  const auto compiled = compile(grammar);
  std::mt19937 random(17);
  int n_inside = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (uint32_t n = random() % 9; n > 0; --n) text += "aabcd"[random() % 5];
    if (i % 3 == 0) text = testing::Sentences(grammar, random).make();
    if (text.size() > 100) continue;
    n_inside += language.contains(text);
    ASSERT_EQ(testing::matches(Matcher(compiled), text), language.contains(text)) << text;
  }
  EXPECT_GT(n_inside, 500);
}

}  // namespace
}  // namespace strata::text
