#include "strata/text/grammar/token_masks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "strata/base/error.h"
#include "strata/text/grammar/gbnf.h"
#include "strata/text/grammar/json_text.h"
#include "strata/text/grammar/regex.h"
#include "strata/text/grammar/state_classes.h"
#include "strata/text/grammar/test_language.h"
#include "strata/text/tokenizer.h"
#include "tests/support/vocab.h"

namespace strata::text {
namespace {

using Words = std::vector<uint64_t>;

struct Vocabulary {
  std::vector<std::string> pieces;
  std::vector<int32_t> ends;

  std::shared_ptr<const TokenTrie> trie() const {
    return std::make_shared<const TokenTrie>(
        std::vector<std::string_view>(pieces.begin(), pieces.end()), ends);
  }
};

// Short texts over the characters of the random grammars, pieces of characters, bytes that are no
// text, duplicates, and two end tokens.
Vocabulary random_vocabulary(std::mt19937& random, const std::string& extra = "") {
  Vocabulary vocabulary;
  testing::RandomGrammar maker(random);
  for (int byte = 0; byte < 256; ++byte) vocabulary.pieces.emplace_back(1, static_cast<char>(byte));
  for (int i = 0; i < 300; ++i) {
    std::string piece;
    for (int n = 1 + maker.below(5); n > 0; --n) {
      if (!extra.empty() && maker.below(2) == 0) {
        piece += extra[static_cast<size_t>(maker.below(static_cast<int>(extra.size())))];
      } else {
        append_utf8(piece, maker.character());
      }
    }
    const auto begin = static_cast<size_t>(maker.below(2));
    vocabulary.pieces.push_back(piece.substr(std::min(begin, piece.size() - 1)));
    if (maker.below(8) == 0) vocabulary.pieces.back().pop_back();
    if (maker.below(20) == 0) vocabulary.pieces.push_back(vocabulary.pieces.back());
  }
  vocabulary.ends = {17, static_cast<int32_t>(vocabulary.pieces.size())};
  vocabulary.pieces.emplace_back("<end>");
  return vocabulary;
}

// By trying each token.
Words mask_by_trial(const Matcher& matcher, const Vocabulary& vocabulary, size_t n_words) {
  Words words(n_words, 0);
  for (size_t id = 0; id < vocabulary.pieces.size(); ++id) {
    const bool is_end = static_cast<int32_t>(id) == vocabulary.ends[0] ||
                        static_cast<int32_t>(id) == vocabulary.ends[1];
    Matcher next(matcher);
    const bool allowed = is_end
                             ? matcher.may_end()
                             : !vocabulary.pieces[id].empty() && next.accept(vocabulary.pieces[id]);
    if (allowed) words[id / 64] |= uint64_t{1} << (id % 64);
  }
  return words;
}

std::vector<size_t> tokens_of(const Words& words) {
  std::vector<size_t> tokens;
  for (size_t i = 0; i < words.size() * 64; ++i) {
    if ((words[i / 64] >> (i % 64) & 1) != 0) tokens.push_back(i);
  }
  return tokens;
}

// Follows random allowed tokens and compares each mask with the trial of every token.
void check_walk(const Grammar& grammar, TokenMasks& masks, TokenMasks& uncached,
                const std::shared_ptr<const CompiledGrammar>& compiled,
                const Vocabulary& vocabulary, std::mt19937& random, int n_steps) {
  Matcher matcher(compiled);
  std::string text;
  for (int step = 0; step < n_steps; ++step) {
    const Words expected = mask_by_trial(matcher, vocabulary, masks.trie().n_words());
    Words mask(expected.size(), ~uint64_t{0});
    const bool any = masks.mask(matcher, mask);
    ASSERT_EQ(tokens_of(mask), tokens_of(expected))
        << testing::gbnf_of(grammar) << "behind " << ::testing::PrintToString(text);
    ASSERT_EQ(any, !tokens_of(expected).empty());
    Words again(expected.size(), 0);
    uncached.mask(matcher, again);
    ASSERT_EQ(again, expected);
    std::vector<size_t> choices;
    for (const size_t token : tokens_of(mask)) {
      if (static_cast<int32_t>(token) != vocabulary.ends[0] &&
          static_cast<int32_t>(token) != vocabulary.ends[1]) {
        choices.push_back(token);
      }
    }
    if (choices.empty()) return;
    const std::string& piece = vocabulary.pieces[choices[random() % choices.size()]];
    ASSERT_TRUE(matcher.accept(piece));
    text += piece;
  }
}

TEST(TokenMasks, are_what_trying_each_token_gives) {
  std::mt19937 random(1);
  int n_grammars = 0;
  for (int round = 0; round < 150; ++round) {
    const Grammar grammar = testing::RandomGrammar(random).make();
    std::shared_ptr<const CompiledGrammar> compiled;
    try {
      compiled = compile(grammar);
    } catch (const Error&) {
      continue;
    }
    ++n_grammars;
    const Vocabulary vocabulary = random_vocabulary(random);
    const auto trie = vocabulary.trie();
    TokenMasks masks(compiled, trie);
    TokenMasks uncached(compiled, trie, 0);
    for (int walk = 0; walk < 2 && !HasFatalFailure(); ++walk) {
      check_walk(grammar, masks, uncached, compiled, vocabulary, random, 8);
    }
    if (HasFatalFailure()) return;
    EXPECT_GT(masks.n_cache_bytes(), 0u);
    EXPECT_EQ(uncached.n_cache_bytes(), 0u);
  }
  EXPECT_GT(n_grammars, 40);
}

// Grammars that the shortcuts are made for: free text, bounded text, nesting, rules that may have
// ended, ambiguity.
TEST(TokenMasks, of_typical_grammars) {
  std::mt19937 random(2);
  const Grammar grammars[] = {
      json_value_grammar(),
      json_object_grammar(),
      parse_gbnf("root ::= [^\"\\\\\\x00-\\x1F]* \"\\\"\""),
      parse_gbnf("root ::= \"\\\"\" [^\"]{0,9} \"\\\"\" root?"),
      parse_gbnf("root ::= \"\\\"\" [^\"]{3,17} \"\\\"\" root?"),
      parse_gbnf("root ::= [a-zA-Z0-9 \\U00000080-\\U0010FFFF]{0,600}"),
      parse_gbnf("root ::= ([^()] | \"(\" root \")\")*"),
      parse_gbnf("root ::= item (\",\" item)*\nitem ::= [0-9a-c]+ | \"[\" root? \"]\""),
      parse_gbnf("root ::= \"a\" root \"a\" | \"a\" root \"b\" | [^ab]{0,5}"),
      regex_grammar("[ab]*a[ab\"]{20}"),
      regex_grammar("foo|bar", {.full_match = false}),
  };
  for (const Grammar& grammar : grammars) {
    const auto compiled = compile(grammar);
    const Vocabulary vocabulary = random_vocabulary(random, "(),[]{}: 0123\\\"\n.-");
    const auto trie = vocabulary.trie();
    TokenMasks masks(compiled, trie);
    TokenMasks uncached(compiled, trie, 0);
    for (int walk = 0; walk < 6; ++walk) {
      check_walk(grammar, masks, uncached, compiled, vocabulary, random, 25);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(TokenMasks, end_tokens_when_the_text_may_end) {
  Vocabulary vocabulary{{"a", "b", "</s>", "ab"}, {2, 1}};
  const auto compiled = compile(parse_gbnf("root ::= \"a\" \"b\""));
  TokenMasks masks(compiled, vocabulary.trie());
  Matcher matcher(compiled);
  Words mask(1);
  EXPECT_TRUE(masks.mask(matcher, mask));
  EXPECT_EQ(mask[0], 0b1001u);
  ASSERT_TRUE(matcher.accept("a"));
  EXPECT_FALSE(masks.mask(matcher, mask)) << "token 1 reads b but ends the answer";
  EXPECT_EQ(mask[0], 0u);
  ASSERT_TRUE(matcher.accept("b"));
  EXPECT_TRUE(masks.mask(matcher, mask));
  EXPECT_EQ(mask[0], 0b0110u);
}

TEST(TokenMasks, characters_cut_between_tokens) {
  const Vocabulary vocabulary{{"\xC3", "\xA9", "\xA8", "\xC3\xA9", "a",
                               "\xA9"
                               "b",
                               "b", "\xE4"},
                              {}};
  const auto compiled = compile(parse_gbnf("root ::= \"\xC3\xA9\" \"b\""));
  TokenMasks masks(compiled, vocabulary.trie());
  Matcher matcher(compiled);
  Words mask(1);
  masks.mask(matcher, mask);
  EXPECT_EQ(mask[0], 0b0000'1001u);
  ASSERT_TRUE(matcher.accept("\xC3"));
  masks.mask(matcher, mask);
  EXPECT_EQ(mask[0], 0b0010'0010u);
}

TEST(TokenMasks, a_full_cache_only_costs_time) {
  std::mt19937 random(3);
  const Vocabulary vocabulary = random_vocabulary(random, "[]{},: 01\\\"");
  const auto compiled = compile(json_value_grammar());
  TokenMasks masks(compiled, vocabulary.trie(), 3000);
  TokenMasks uncached(compiled, vocabulary.trie(), 0);
  for (int walk = 0; walk < 4; ++walk) {
    check_walk(json_value_grammar(), masks, uncached, compiled, vocabulary, random, 20);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(masks.n_cache_bytes(), 0u);
  EXPECT_LE(masks.n_cache_bytes(), 3000u);
}

// Each character doubles the ways to read the text.
constexpr const char* kDoubles =
    "root ::= f\n"
    "f ::= [ -~] (f | g) \"1\" | [ -~]\n"
    "g ::= [ -~] (f | g) \"2\" | [ -~]\n";

TEST(TokenMasks, work_without_end_is_refused) {
  Vocabulary vocabulary;
  std::mt19937 random(5);
  for (int i = 0; i < 20'000; ++i) {
    std::string word;
    for (uint32_t n = 1 + random() % 12; n > 0; --n) word += static_cast<char>('a' + random() % 26);
    vocabulary.pieces.push_back(word);
  }
  const auto compiled = compile(parse_gbnf(kDoubles));
  TokenMasks masks(compiled, vocabulary.trie(), TokenMasks::kDefaultCacheBytes, 1'000'000);
  Words mask(masks.trie().n_words());
  const Matcher matcher(compiled);
  try {
    masks.mask(matcher, mask);
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(e.what(), ::testing::HasSubstr("too ambiguous"));
  }
}

// Whether a mask takes too much work is no matter of what was asked before: kept or not, the same.
TEST(TokenMasks, work_counts_the_same_when_it_is_kept) {
  std::mt19937 random(6);
  const Vocabulary vocabulary = random_vocabulary(random, "[]{},: 01\\\"");
  const auto trie = vocabulary.trie();
  const auto compiled = compile(json_value_grammar());
  const auto refuses = [&](TokenMasks& masks, const Matcher& matcher) {
    Words mask(trie->n_words());
    try {
      masks.mask(matcher, mask);
      return false;
    } catch (const Error&) {
      return true;
    }
  };
  int n_refused = 0, n_made = 0;
  for (size_t work = 50; work < 5000; work += work / 4) {
    TokenMasks kept(compiled, trie, TokenMasks::kDefaultCacheBytes, work);
    for (const std::string_view text :
         {"", "[", "[{", "[{\"", "[{\"a\":", "[{\"a\":[1", "[{\"a\":[1]}"}) {
      Matcher matcher(compiled);
      ASSERT_TRUE(matcher.accept(text));
      TokenMasks fresh(compiled, trie, 0, work);
      const bool refused = refuses(fresh, matcher);
      for (int again = 0; again < 3; ++again) EXPECT_EQ(refuses(kept, matcher), refused) << text;
      ++(refused ? n_refused : n_made);
    }
  }
  EXPECT_GT(n_refused, 10);
  EXPECT_GT(n_made, 10);
}

TEST(ForcedTokens, as_the_tokenizer_writes_them) {
  VocabData data = strata::testing::byte_vocab();
  strata::testing::add_merge(data, "a", "b");   // 256
  strata::testing::add_merge(data, "ab", "c");  // 257
  strata::testing::add_merge(data, "d", "x");   // 258
  const Tokenizer tokenizer(data);
  const TokenTrie trie = make_token_trie(tokenizer, tokenizer.n_vocab());
  const auto forced = [&](std::string_view gbnf) {
    return forced_tokens(Matcher(compile(parse_gbnf(gbnf))), trie, tokenizer);
  };
  using ::testing::ElementsAre;
  using ::testing::IsEmpty;
  EXPECT_THAT(forced("root ::= \"zabc\""), ElementsAre('z', 257));
  EXPECT_THAT(forced("root ::= \"zabc\" [0-9]"), ElementsAre('z', 257));
  // "dx" may follow as one token.
  EXPECT_THAT(forced("root ::= \"abcd\" [x-z]"), ElementsAre(257));
  EXPECT_THAT(forced("root ::= \"abcd\""), ElementsAre(257, 'd'));
  // "abc" may take the place of "ab".
  EXPECT_THAT(forced("root ::= \"ab\" [c-d]"), IsEmpty());
  EXPECT_THAT(forced("root ::= [ab]"), IsEmpty());
  EXPECT_THAT(forced("root ::= \"\" | \"abc\""), IsEmpty());
}

// Places of a counted repetition share a mask, except near its bounds.
TEST(AlikeStates, PlacesOfARepetition) {
  const auto compiled = compile(parse_gbnf("root ::= \"<\" [a-z]{10,500} \">\""));
  constexpr size_t kBytes = 16;
  const std::vector<CompiledGrammar::State> alike = alike_states(*compiled, kBytes, 1 << 24);
  ASSERT_EQ(alike.size(), compiled->n_states());
  size_t n = 0;
  for (size_t s = 0; s < alike.size(); ++s) {
    ASSERT_LE(alike[s], s);
    ASSERT_EQ(alike[alike[s]], alike[s]);
    n += alike[s] == s ? 1 : 0;
  }
  EXPECT_GT(compiled->n_states(), 500U);
  EXPECT_GT(n, kBytes);
  EXPECT_LT(n, 10 + 2 * kBytes);
  // Where that would take too long each is itself.
  const std::vector<CompiledGrammar::State> apart = alike_states(*compiled, kBytes, 100);
  for (size_t s = 0; s < apart.size(); ++s) EXPECT_EQ(apart[s], s);

  // At every place the mask is that of trying each token.
  const Vocabulary vocabulary = [] {
    Vocabulary v;
    for (const char* piece : {"<", ">", "a", "b>", "abc", "abcdefgh", "zz>", "aaaaaaaaaaaaaaaa"}) {
      v.pieces.emplace_back(piece);
    }
    v.ends = {8, 9};
    v.pieces.resize(10);
    return v;
  }();
  TokenMasks masks(compiled, vocabulary.trie());
  Matcher matcher(compiled);
  ASSERT_TRUE(matcher.accept("<"));
  for (int i = 0; i <= 500; ++i) {
    Words words(masks.trie().n_words());
    masks.mask(matcher, words);
    ASSERT_EQ(tokens_of(words), tokens_of(mask_by_trial(matcher, vocabulary, words.size()))) << i;
    ASSERT_EQ(matcher.accept("a"), i < 500);
  }
}

}  // namespace
}  // namespace strata::text
