#include "strata/text/grammar/matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/grammar/gbnf.h"
#include "strata/text/grammar/json_text.h"
#include "strata/text/grammar/regex.h"
#include "strata/text/grammar/test_language.h"

namespace strata::text {
namespace {

Matcher matcher_of(std::string_view gbnf) { return Matcher(compile(parse_gbnf(gbnf))); }

std::shared_ptr<const CompiledGrammar> try_compile(const Grammar& grammar) {
  try {
    return compile(grammar);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument) << e.what();
    return nullptr;
  }
}

// Where a matcher is, to tell places apart.
std::vector<uint32_t> place(const Matcher& matcher) {
  std::vector<uint32_t> words;
  for (const Configuration& it : matcher.configurations()) {
    words.push_back(it.state);
    for (uint32_t stack = it.stack; stack > StackPool::kUnknown;
         stack = matcher.stacks().below(stack)) {
      words.push_back(matcher.stacks().top(stack));
    }
    words.push_back(UINT32_MAX);
  }
  return words;
}

// Some bytes that make the text whole; a breadth-first search.
std::optional<std::string> completion(const Matcher& start) {
  std::set<std::vector<uint32_t>> seen{place(start)};
  std::deque<std::pair<Matcher, std::string>> todo{{start, ""}};
  for (int steps = 0; steps < 400 && !todo.empty(); ++steps) {
    const auto [matcher, text] = std::move(todo.front());
    todo.pop_front();
    if (matcher.may_end()) return text;
    for (int byte = 0; byte < 256; ++byte) {
      const char c = static_cast<char>(byte);
      Matcher next(matcher);
      if (!next.accept({&c, 1}) || !seen.insert(place(next)).second) continue;
      todo.emplace_back(std::move(next), text + c);
    }
  }
  return std::nullopt;
}

class RandomGrammars : public ::testing::TestWithParam<uint32_t> {};

// Texts of the language, mutations of them, and random ones: accepted exactly if they are in it.
TEST_P(RandomGrammars, accept_the_language_and_nothing_else) {
  std::mt19937 random(GetParam());
  int n_compiled = 0;
  int n_inside = 0;
  int n_outside = 0;
  int n_too_ambiguous = 0;
  for (int round = 0; round < 300; ++round) {
    testing::RandomGrammar maker(random);
    const Grammar grammar = maker.make();
    const auto compiled = try_compile(grammar);
    if (!compiled) continue;
    ++n_compiled;
    testing::SlowLanguage language(grammar);
    testing::Sentences sentences(grammar, random);
    for (int i = 0; i < 30; ++i) {
      std::string text = i < 15 ? sentences.make() : maker.text(8);
      if (text.size() > 200) continue;
      if (i < 10 && i > 4 && !text.empty()) {
        const auto at = static_cast<size_t>(maker.below(static_cast<int>(text.size())));
        text.replace(at, static_cast<size_t>(maker.below(3)), maker.text(2));
      }
      const bool inside = language.contains(text);
      (inside ? n_inside : n_outside) += 1;
      try {
        ASSERT_EQ(testing::matches(Matcher(compiled), text), inside)
            << testing::gbnf_of(grammar) << "on " << ::testing::PrintToString(text);
      } catch (const Error& e) {
        ASSERT_EQ(e.code(), ErrorCode::kUnsupported) << e.what();
        ++n_too_ambiguous;
        continue;
      }
      if (!inside) continue;
      Matcher bytes(compiled);
      for (const char c : text) ASSERT_TRUE(bytes.accept({&c, 1}));
      ASSERT_TRUE(bytes.may_end());
    }
  }
  EXPECT_GT(n_compiled, 80);
  EXPECT_GT(n_inside, 500);
  EXPECT_GT(n_outside, 500);
  EXPECT_LT(n_too_ambiguous, 30);
}

// What is accepted can be completed: no mask leads into a dead end.
TEST_P(RandomGrammars, have_no_dead_ends) {
  std::mt19937 random(GetParam() + 1000);
  int n_completed = 0;
  for (int round = 0; round < 60; ++round) {
    testing::RandomGrammar maker(random);
    const Grammar grammar = maker.make();
    const auto compiled = try_compile(grammar);
    if (!compiled) continue;
    testing::SlowLanguage language(grammar);
    for (int i = 0; i < 6; ++i) {
      const std::string text = i < 3 ? testing::Sentences(grammar, random).make() : maker.text(8);
      Matcher matcher(compiled);
      std::string accepted;
      for (const char c : text.substr(0, 30)) {
        if (!matcher.accept({&c, 1})) break;
        accepted += c;
      }
      const std::optional<std::string> rest = completion(matcher);
      if (!rest) continue;
      ++n_completed;
      ASSERT_TRUE(language.contains(accepted + *rest))
          << testing::gbnf_of(grammar) << "on " << ::testing::PrintToString(accepted + *rest);
      ASSERT_EQ(matcher.may_continue() || matcher.may_end(), true);
    }
  }
  EXPECT_GT(n_completed, 60);
}

TEST_P(RandomGrammars, force_what_has_no_choice) {
  std::mt19937 random(GetParam() + 2000);
  for (int round = 0; round < 200; ++round) {
    testing::RandomGrammar maker(random);
    const Grammar grammar = maker.make();
    const auto compiled = try_compile(grammar);
    if (!compiled) continue;
    Matcher matcher(compiled);
    for (const char c : testing::Sentences(grammar, random).make()) {
      int n_bytes = 0;
      char only = 0;
      for (int byte = 0; byte < 256; ++byte) {
        const char text = static_cast<char>(byte);
        Matcher next(matcher);
        if (!next.accept({&text, 1})) continue;
        ++n_bytes;
        only = text;
      }
      ASSERT_EQ(matcher.may_continue(), n_bytes > 0);
      const std::string forced = matcher.forced_bytes(1);
      ASSERT_EQ(forced.size(), n_bytes == 1 && !matcher.may_end() ? 1u : 0u);
      if (!forced.empty()) {
        ASSERT_EQ(forced[0], only);
      }
      ASSERT_TRUE(matcher.accept({&c, 1}));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGrammars, ::testing::Values(1, 2, 3));

TEST(Matcher, a_refused_text_changes_nothing) {
  Matcher matcher = matcher_of("root ::= \"ab\" \"cd\"");
  EXPECT_FALSE(matcher.accept("abx"));
  EXPECT_TRUE(matcher.accept("a"));
  EXPECT_FALSE(matcher.accept("a"));
  EXPECT_FALSE(matcher.accept(std::string(1000, 'b')));
  EXPECT_TRUE(matcher.accept(""));
  EXPECT_TRUE(matcher.accept("bcd"));
  EXPECT_TRUE(matcher.may_end());
  EXPECT_FALSE(matcher.may_continue());
}

TEST(Matcher, copies_go_their_own_way) {
  Matcher one = matcher_of("root ::= \"(\" root \")\" | [ab]");
  ASSERT_TRUE(one.accept("(("));
  Matcher two(one);
  ASSERT_TRUE(one.accept("a)"));
  ASSERT_TRUE(two.accept("(b"));
  EXPECT_TRUE(two.accept(")))"));
  EXPECT_TRUE(two.may_end());
  EXPECT_FALSE(one.may_end());
  EXPECT_TRUE(one.accept(")"));
  EXPECT_TRUE(one.may_end());
}

TEST(Matcher, forced_bytes_stop_at_a_choice_and_at_the_end) {
  Matcher matcher = matcher_of("root ::= \"{\\\"name\\\": \" [0-9] \"}\"");
  EXPECT_EQ(matcher.forced_bytes(100), "{\"name\": ");
  EXPECT_EQ(matcher.forced_bytes(4), "{\"na");
  EXPECT_EQ(matcher.forced_bytes(0), "");
  ASSERT_TRUE(matcher.accept("{\"name\": 5"));
  EXPECT_EQ(matcher.forced_bytes(100), "}");
  ASSERT_TRUE(matcher.accept("}"));
  EXPECT_EQ(matcher.forced_bytes(100), "");
  EXPECT_EQ(matcher_of("root ::= \"a\" \"b\"?").forced_bytes(9), "a");
  EXPECT_EQ(matcher_of("root ::= \"\xC3\xA9\" | \"\xC3\xA8\"").forced_bytes(9), "\xC3");
}

TEST(Matcher, invalid_utf8_is_refused_at_the_byte) {
  Matcher matcher = matcher_of("root ::= [^a]*");
  for (const std::string_view bytes : {"\x80", "\xC0", "\xC1\x80", "\xE0\x80", "\xED\xA0",
                                       "\xF0\x80", "\xF4\x90", "\xF5", "\xFF", "\xE4\xB8z"}) {
    EXPECT_FALSE(matcher.accept(bytes)) << ::testing::PrintToString(bytes);
  }
  EXPECT_TRUE(matcher.accept("\xE4"));
  EXPECT_FALSE(matcher.may_end());
  EXPECT_FALSE(matcher.accept("z"));
  EXPECT_TRUE(matcher.accept("\xB8"));
  EXPECT_TRUE(matcher.accept("\xAD\xF0\x9F"));
  EXPECT_TRUE(matcher.accept("\x98\x80"));
  EXPECT_TRUE(matcher.may_end());
}

TEST(Matcher, json_nests_deep) {
  const auto grammar = compile(json_value_grammar());
  std::string text;
  for (int i = 0; i < 200; ++i) text += i % 2 == 0 ? "{\"a\": [1, " : "[{\"b\":";
  Matcher matcher(grammar);
  ASSERT_TRUE(matcher.accept(text));
  EXPECT_FALSE(matcher.may_end());
  EXPECT_FALSE(matcher.accept("}"));
  std::string close = "null";
  for (int i = 199; i >= 0; --i) close += i % 2 == 0 ? "]}" : "}]";
  ASSERT_TRUE(matcher.accept(close));
  EXPECT_TRUE(matcher.may_end());
  EXPECT_FALSE(matcher.may_continue());
}

TEST(Matcher, nesting_without_end_is_an_error_that_changes_nothing) {
  Matcher matcher(compile(json_value_grammar()));
  ASSERT_TRUE(matcher.accept(std::string(StackPool::kMaxDepth / 2, '[')));
  const std::string deep(2 * StackPool::kMaxDepth, '[');
  try {
    matcher.accept(deep);
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUnsupported);
  }
  ASSERT_TRUE(matcher.accept(std::string(StackPool::kMaxDepth / 2, ']')));
  EXPECT_TRUE(matcher.may_end());
}

TEST(Matcher, right_recursion_takes_no_stack) {
  Matcher matcher = matcher_of("root ::= [a-z] root | \"(\" root \")\" | \".\"");
  ASSERT_TRUE(matcher.accept(std::string(100000, 'x')));
  EXPECT_LE(matcher.stacks().size(), 64u);
  EXPECT_TRUE(matcher.accept("."));
  EXPECT_TRUE(matcher.may_end());
}

TEST(Matcher, long_texts_keep_the_pool_small) {
  Matcher matcher(compile(json_value_grammar()));
  ASSERT_TRUE(matcher.accept("[0"));
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(matcher.accept(",{\"k\":[[1],[{}]]}"));
  EXPECT_LE(matcher.stacks().size(), 200u);
  ASSERT_TRUE(matcher.accept("]"));
  EXPECT_TRUE(matcher.may_end());
}

TEST(Matcher, ambiguity_is_bounded) {
  // One more way for each character.
  Matcher matcher = matcher_of("root ::= a\na ::= \"x\" a? \"y\"? a?");
  try {
    for (int i = 0; i < 3000; ++i) ASSERT_TRUE(matcher.accept("x"));
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUnsupported);
  }
  EXPECT_LE(matcher.configurations().size(), kMaxConfigurations);
}

TEST(Matcher, long_repetitions) {
  for (const int n : {511, 1025, 2047, 2048, 2049, 3100, 100000}) {
    const auto up_to = compile(parse_gbnf(format("root ::= [a-c]{{0,{}}}", n)));
    const auto exactly = compile(parse_gbnf(format("root ::= [a-c]{{{}}}", n)));
    const auto between = compile(parse_gbnf(format("root ::= [a-c]{{{},{}}}", n / 2, n)));
    EXPECT_LT(up_to->n_bytes() + exactly->n_bytes() + between->n_bytes(), size_t{1} << 20);
    std::set<int> lengths{0, 1, n / 2 - 1, n / 2, n / 2 + 1, n - 1, n, n + 1};
    for (int i = 1; i < 6; ++i) lengths.insert({1024 * i - 1, 1024 * i, 1024 * i + 1});
    for (const int length : lengths) {
      const std::string text(static_cast<size_t>(length), 'b');
      ASSERT_EQ(testing::matches(Matcher(up_to), text), length <= n) << length << " of " << n;
      ASSERT_EQ(testing::matches(Matcher(exactly), text), length == n) << length << " of " << n;
      ASSERT_EQ(testing::matches(Matcher(between), text), length >= n / 2 && length <= n)
          << length << " of " << n;
    }
  }
}

}  // namespace
}  // namespace strata::text
