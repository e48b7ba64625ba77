#include "strata/text/grammar/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "strata/text/grammar/compiled_grammar.h"
#include "strata/text/grammar/test_language.h"

namespace strata::text {
namespace {

TEST(JsonText, values) {
  const Matcher value(compile(json_value_grammar()));
  for (const char* text :
       {"null", "true", "false", "0", "-0", "-12.5e+10", "1E5", "\"\"", "\"a\\n\\u00e9\"", "[]",
        "{}", "[1,2, 3]", "{\"a\":1, \"b\": [null]}", "\"\\ud83d\\uDE00\"", "\"\xE4\xB8\xAD\""}) {
    EXPECT_TRUE(testing::matches(value, text)) << text;
    EXPECT_TRUE(nlohmann::json::accept(text)) << text;
  }
  for (const char* text : {"",        "nul",         "01",          "1.",   ".5",
                           "+1",      "--1",         "1e",          "\"",   "\"\n\"",
                           "\"\\x\"", "\"\\ud83d\"", "\"\\ude00\"", "[1,]", "[,1]",
                           "{a:1}",   "{\"a\"}",     " 1",          "1 ",   "[1 ,2]",
                           "[1,  2]", "{\"a\":\t1}", "\"\xFF\""}) {
    EXPECT_FALSE(testing::matches(value, text)) << text;
  }
}

TEST(JsonText, an_object_at_the_top) {
  const Matcher object(compile(json_object_grammar()));
  EXPECT_TRUE(testing::matches(object, "{\"a\":[1]}"));
  EXPECT_FALSE(testing::matches(object, "[1]"));
}

TEST(JsonText, numbers_are_bounded) {
  const Matcher value(compile(json_value_grammar()));
  EXPECT_TRUE(testing::matches(value, "123456789012345678.123456789012345678e12"));
  EXPECT_FALSE(testing::matches(value, "1234567890123456789"));
  EXPECT_FALSE(testing::matches(value, "1e123"));
}

TEST(JsonText, random_texts_are_json) {
  std::mt19937 random(23);
  const Grammar grammar = json_value_grammar();
  testing::Sentences sentences(grammar, random);
  const Matcher value(compile(grammar));
  for (int i = 0; i < 3000; ++i) {
    const std::string text = sentences.make();
    ASSERT_TRUE(nlohmann::json::accept(text)) << text;
    ASSERT_TRUE(testing::matches(value, text)) << text;
  }
}

TEST(JsonText, each_character_is_written_in_one_way) {
  for (char32_t c = 0; c < 0x250; ++c) {
    Grammar grammar;
    const RuleId root = grammar.add_rule("root");
    const GrammarNodeId quote = grammar.literal("\"");
    grammar.define(root, grammar.sequence({quote, json_characters(grammar, {{c, c}}), quote}));
    const Matcher matcher(compile(grammar));
    std::string value;
    append_utf8(value, c);
    const std::string text = nlohmann::json(value).dump();
    EXPECT_TRUE(testing::matches(matcher, text)) << text;
    EXPECT_EQ(matcher.forced_bytes(100), text);
  }
}

}  // namespace
}  // namespace strata::text
