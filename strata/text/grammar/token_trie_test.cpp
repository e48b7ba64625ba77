#include "strata/text/grammar/token_trie.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "strata/base/error.h"
#include "strata/text/tokenizer.h"
#include "tests/support/vocab.h"

namespace strata::text {
namespace {

TokenTrie trie_of(const std::vector<std::string>& pieces, const std::vector<int32_t>& ends = {}) {
  return TokenTrie(std::vector<std::string_view>(pieces.begin(), pieces.end()), ends);
}

// Reads the tries back: the bytes of each token.
std::map<uint32_t, std::string> read_back(const TokenTrie& trie) {
  std::map<uint32_t, std::string> found;
  for (const TokenTrie::Part& part : trie.parts()) {
    std::string path;
    std::vector<uint32_t> ends;
    for (uint32_t i = part.begin; i < part.end; ++i) {
      const TokenTrie::Node& node = trie.nodes()[i];
      EXPECT_GT(node.end, i);
      EXPECT_LE(node.end, part.end);
      path.resize(node.depth - 1u);
      ends.resize(node.depth - 1u);
      if (!ends.empty()) {
        EXPECT_LE(node.end, ends.back());
      }
      path += static_cast<char>(node.byte);
      ends.push_back(node.end);
      for (uint32_t id = node.token; id != TokenTrie::kNoToken; id = trie.same(id)) {
        EXPECT_TRUE(found.emplace(id, path).second) << "token " << id << " stands twice";
      }
    }
  }
  return found;
}

std::set<uint32_t> tokens_of(std::span<const uint64_t> words) {
  std::set<uint32_t> tokens;
  for (uint32_t i = 0; i < words.size() * 64; ++i) {
    if ((words[i / 64] >> (i % 64) & 1) != 0) tokens.insert(i);
  }
  return tokens;
}

TEST(TokenTrie, holds_every_token_once) {
  std::mt19937 random(1);
  std::vector<std::string> pieces;
  for (int i = 0; i < 2000; ++i) {
    std::string piece;
    for (uint32_t n = random() % 7; n > 0; --n)
      piece += "ab \"\xC3\xA9\xE4\xB8\xAD\x80"[random() % 10];
    pieces.push_back(piece);
  }
  pieces.push_back(std::string(TokenTrie::kMaxTokenBytes + 1, 'a'));
  const TokenTrie trie = trie_of(pieces, {5, 1999});
  std::map<uint32_t, std::string> expected;
  for (uint32_t i = 0; i < 2000; ++i) {
    if (!pieces[i].empty() && i != 5 && i != 1999) expected.emplace(i, pieces[i]);
  }
  EXPECT_EQ(read_back(trie), expected);
  EXPECT_EQ(trie.n_vocab(), 2001);
  EXPECT_EQ(trie.n_words(), 32u);
}

TEST(TokenTrie, harmless_tokens_by_characters_and_length) {
  const std::vector<std::string> pieces = {"ab",
                                           "abcd",
                                           "abcde",
                                           "a.",
                                           "a\"",
                                           "a\\",
                                           "\n",
                                           "\xC3\xA9",
                                           "\xC3",
                                           "\x7F",
                                           "a\t",
                                           " ",
                                           "'",
                                           std::string(40, 'x'),
                                           std::string(20, '-')};
  const TokenTrie trie = trie_of(pieces);
  using Characters = TokenTrie::Characters;
  EXPECT_EQ(tokens_of(trie.bits(Characters::kWords, 1)), (std::set<uint32_t>{0, 1, 7, 11}));
  EXPECT_EQ(tokens_of(trie.bits(Characters::kWords, 2)), (std::set<uint32_t>{0, 1, 2, 7, 11}));
  EXPECT_EQ(tokens_of(trie.bits(Characters::kWords, 4)), (std::set<uint32_t>{0, 1, 2, 7, 11}));
  EXPECT_EQ(tokens_of(trie.bits(Characters::kWords, 5)), (std::set<uint32_t>{0, 1, 2, 7, 11, 13}));
  EXPECT_EQ(tokens_of(trie.bits(Characters::kText, 3)), (std::set<uint32_t>{3, 12}));
  EXPECT_EQ(tokens_of(trie.bits(Characters::kText, 5)), (std::set<uint32_t>{3, 12, 14}));
}

TEST(TokenTrie, longer_tokens) {
  const TokenTrie trie = trie_of({"ab", "abc", "abd\"", "x"});
  EXPECT_TRUE(trie.has_longer(""));
  EXPECT_TRUE(trie.has_longer("a"));
  EXPECT_TRUE(trie.has_longer("ab"));
  EXPECT_TRUE(trie.has_longer("abd"));
  EXPECT_FALSE(trie.has_longer("abc"));
  EXPECT_FALSE(trie.has_longer("x"));
  EXPECT_FALSE(trie.has_longer("y"));
  EXPECT_FALSE(trie_of({}).has_longer(""));
}

TEST(TokenTrie, of_a_tokenizer) {
  VocabData data = strata::testing::byte_vocab();
  strata::testing::add_token(data, "<|im_end|>", TokenType::kControl);
  strata::testing::add_token(data, "<think>", TokenType::kUserDefined);
  const Tokenizer tokenizer(data);
  const TokenTrie trie = make_token_trie(tokenizer, 300);
  EXPECT_EQ(trie.n_vocab(), 300);
  const auto tokens = read_back(trie);
  EXPECT_EQ(tokens.size(), 257u);
  EXPECT_EQ(tokens.count(256), 0u);
  EXPECT_EQ(tokens.at(257), "<think>");
  EXPECT_THAT(std::vector<int32_t>(trie.end_ids().begin(), trie.end_ids().end()),
              ::testing::ElementsAre(256));
}

TEST(TokenTrie, an_end_token_outside_the_vocabulary) {
  EXPECT_THROW(trie_of({"a"}, {1}), Error);
  EXPECT_THROW(trie_of({"a"}, {-1}), Error);
}

}  // namespace
}  // namespace strata::text
