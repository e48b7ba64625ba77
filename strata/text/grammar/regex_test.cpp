#include "strata/text/grammar/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <regex>
#include <string>

#include "strata/base/error.h"
#include "strata/text/grammar/compiled_grammar.h"
#include "strata/text/grammar/json_text.h"
#include "strata/text/grammar/test_language.h"

namespace strata::text {
namespace {

using ::testing::HasSubstr;

bool matches(std::string_view pattern, std::string_view text, const RegexOptions& options = {}) {
  return testing::matches(Matcher(compile(regex_grammar(pattern, options))), text);
}

void expect_error(std::string_view pattern, std::string_view message,
                  ErrorCode code = ErrorCode::kUnsupported, const RegexOptions& options = {}) {
  try {
    compile(regex_grammar(pattern, options));
    ADD_FAILURE() << "no error for " << pattern;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(message)) << pattern;
  }
}

TEST(Regex, parts) {
  EXPECT_TRUE(matches("", ""));
  EXPECT_TRUE(matches("a|b|", "b"));
  EXPECT_TRUE(matches("a|b|", ""));
  EXPECT_TRUE(matches("(?:ab)+(?<name>c)?(d)*", "ababcdd"));
  EXPECT_TRUE(matches("a{2}b{1,}c{0,2}", "aabbbcc"));
  EXPECT_FALSE(matches("a{2}b{1,}c{0,2}", "aabbbccc"));
  EXPECT_TRUE(matches("a+?b*?c??d{1,2}?", "aabdd"));
  EXPECT_TRUE(matches("[a-c\\d_-]+", "a3_-b"));
  EXPECT_FALSE(matches("[^a-c]", "b"));
  EXPECT_TRUE(matches("[^a-c]", "\xF0\x9F\x98\x80"));
  EXPECT_FALSE(matches("[]|b", "a"));
  EXPECT_TRUE(matches("[^]", "\n"));
  EXPECT_TRUE(matches("\\d\\D\\w\\W\\s\\S", "1a_- x"));
  EXPECT_TRUE(matches("\\s", "\xE2\x80\xA8"));
  EXPECT_FALSE(matches(".", "\n"));
  EXPECT_FALSE(matches(".", "\xE2\x80\xA8"));
  EXPECT_TRUE(matches(".", "\xE4\xB8\xAD"));
  EXPECT_TRUE(matches("\\x41\\u00e9\\u{1F600}\\uD83D\\uDE00\\cJ\\0",
                      std::string_view("A\xC3\xA9\xF0\x9F\x98\x80\xF0\x9F\x98\x80\n\0", 13)));
  EXPECT_TRUE(matches("\\^\\$\\.\\*\\/\\-\\\\", "^$.*/-\\"));
  EXPECT_TRUE(matches("a{b}{,2}]", "a{b}{,2}]"));
  EXPECT_TRUE(matches("[\\b]", "\b"));
  EXPECT_TRUE(matches("[\\w-x]", "-"));
}

TEST(Regex, anchors_and_search) {
  const RegexOptions search{.full_match = false};
  EXPECT_TRUE(matches("^abc$", "abc"));
  EXPECT_TRUE(matches("^(a|b)$", "b"));
  EXPECT_TRUE(matches("(^a|b$)", "b"));
  EXPECT_TRUE(matches("b", "abc", search));
  EXPECT_TRUE(matches("b", "a\nb\n", search));
  EXPECT_FALSE(matches("^b", "abc", search));
  EXPECT_TRUE(matches("^ab", "abc", search));
  EXPECT_TRUE(matches("bc$", "abc", search));
  EXPECT_TRUE(matches("^x|c$", "abc", search));
  EXPECT_TRUE(matches("^x|c$", "xbc", search));
  EXPECT_FALSE(matches("^x|c$", "bcd", search));
  EXPECT_TRUE(matches("^(?:a|b)$", "a", search));
  EXPECT_FALSE(matches("^(?:a|b)$", "ab", search));
  EXPECT_TRUE(matches("(^a)b", "abc", search));
  EXPECT_FALSE(matches("(^a)b", "xabc", search));
  expect_error("a^b", "^ behind the start");
  expect_error("a$b", "$ in front of the end");
  expect_error("(a$)b", "$ in front of the end");
  expect_error("a(^b)", "^ behind the start");
  expect_error("^*a", "repeated anchor");
  expect_error("(^a)+", "repeated anchor");
  expect_error("(^a|b)c", "anchor in some alternatives", ErrorCode::kUnsupported, search);
}

TEST(Regex, what_is_not_regular_is_named) {
  expect_error("(a)\\1", "back-reference");
  expect_error("(?<x>a)\\k<x>", "back-reference");
  expect_error("a(?=b)", "look-ahead");
  expect_error("a(?!b)", "look-ahead");
  expect_error("(?<=a)b", "look-behind");
  expect_error("(?<!a)b", "look-behind");
  expect_error("\\bword", "word boundary");
  expect_error("\\Bword", "word boundary");
  expect_error("\\p{L}", "property");
  expect_error("(?i:a)", "flags");
  expect_error("\\07", "octal");
}

TEST(Regex, what_cannot_be_read) {
  for (const char* pattern : {"(", "(a", "a)", "[a", "[z-a]", "*", "a**", "a|+", "{2}", "a{3,2}",
                              "\\", "\\xg0", "\\u{110000}", "\\uD800", "\\q", "(?<x", "\xFF"}) {
    expect_error(pattern, "pattern", ErrorCode::kInvalidArgument);
  }
  std::string deep(100000, '(');
  expect_error(deep, "deeper");
  expect_error("a{1000001}", "above");
}

TEST(Regex, inside_a_json_string) {
  const RegexOptions json{.in_json_string = true};
  EXPECT_TRUE(matches("a.b", "a\\\"b", json));
  EXPECT_FALSE(matches("a.b", "a\"b", json));
  EXPECT_TRUE(matches("\\n\\\\\\t", "\\n\\\\\\t", json));
  EXPECT_FALSE(matches("\\n", "\n", json));
  EXPECT_TRUE(matches("[^a]", "\\u0001", json));
  EXPECT_FALSE(matches("[^\\x01]", "\\u0001", json));
  EXPECT_TRUE(matches("[\"a]{2}", "\\\"a", json));
  EXPECT_TRUE(matches("\xC3\xA9", "\xC3\xA9", json));
  EXPECT_TRUE(matches("b", "\\\\b\\n", {.full_match = false, .in_json_string = true}));
}

TEST(Regex, many_states_are_followed_at_once) {
  // The deterministic automaton would have 2^17 states.
  const auto grammar = compile(regex_grammar("[ab]*a[ab]{16}"));
  EXPECT_LT(grammar->n_states(), 1000u);
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (int n = 10 + static_cast<int>(random() % 30); n > 0; --n) text += "ab"[random() % 2];
    const bool expected = text.size() >= 17 && text[text.size() - 17] == 'a';
    ASSERT_EQ(testing::matches(Matcher(grammar), text), expected) << text;
  }
}

std::string random_pattern(std::mt19937& random, int depth) {
  const auto below = [&](uint32_t n) { return random() % n; };
  std::string out;
  for (uint32_t n = below(3) + 1; n > 0; --n) {
    const uint32_t kind = depth > 2 ? below(4) : below(6);
    const bool group = kind > 3;
    switch (kind) {
      case 0:
      case 1:
        out += "abc"[below(3)];
        break;
      case 2:
        out += below(2) == 0 ? "[ab]" : "[^a]";
        break;
      case 3:
        out += below(2) == 0 ? "." : "\\w";
        break;
      case 4:
        out += "(" + random_pattern(random, depth + 1) + ")";
        break;
      default:
        out += "(?:" + random_pattern(random, depth + 1) + "|" + random_pattern(random, depth + 1) +
               ")";
        break;
    }
    // Loops inside loops take the standard library time without end.
    const char* const quantifiers[] = {"", "", "?", "{2}", "", "*", "+", "{1,2}", "*?", "{2,}"};
    out += quantifiers[below(group ? 4 : 10)];
  }
  return out;
}

TEST(Regex, random_patterns_against_the_standard_library) {
  std::mt19937 random(11);
  int n_matches = 0;
  for (int round = 0; round < 400; ++round) {
    const std::string pattern = random_pattern(random, 0);
    const std::regex expected(pattern, std::regex::ECMAScript);
    const Grammar grammar = regex_grammar(pattern);
    const Matcher matcher(compile(grammar));
    const Matcher search(compile(regex_grammar(pattern, {.full_match = false})));
    for (int i = 0; i < 20; ++i) {
      std::string text;
      for (uint32_t n = random() % 7; n > 0; --n) text += "abc-"[random() % 4];
      if (i < 5) text = testing::Sentences(grammar, random).make().substr(0, 14);
      bool ascii = true;
      for (const char c : text) ascii = ascii && c >= ' ' && c < 0x7F;
      if (!ascii) continue;
      n_matches += std::regex_match(text, expected);
      ASSERT_EQ(testing::matches(matcher, text), std::regex_match(text, expected))
          << pattern << " on " << text;
      ASSERT_EQ(testing::matches(search, text), std::regex_search(text, expected))
          << pattern << " in " << text;
    }
  }
  EXPECT_GT(n_matches, 500);
}

}  // namespace
}  // namespace strata::text
