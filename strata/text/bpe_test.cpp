#include "strata/text/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "strata/base/error.h"
#include "tests/support/vocab.h"

namespace strata::text {
namespace {

using strata::testing::add_merge;
using strata::testing::add_token;
using strata::testing::byte_vocab;
using ::testing::HasSubstr;

std::vector<std::string> pieces(const VocabData& data, std::string_view text) {
  const Vocab vocab(data);
  const Bpe bpe(vocab, data.merges);
  Bpe::Scratch scratch;
  std::vector<int32_t> ids;
  bpe.encode(text, scratch, ids);
  std::vector<std::string> out;
  for (const int32_t id : ids) out.emplace_back(vocab.piece(id));
  return out;
}

using Strings = std::vector<std::string>;

TEST(Bpe, joins_the_best_pair_first) {
  VocabData data = byte_vocab();
  add_merge(data, "b", "c");
  add_merge(data, "a", "b");
  add_merge(data, "a", "bc");
  EXPECT_EQ(pieces(data, ""), Strings());
  EXPECT_EQ(pieces(data, "a"), Strings{"a"});
  EXPECT_EQ(pieces(data, "ab"), Strings{"ab"});
  EXPECT_EQ(pieces(data, "abc"), Strings{"abc"});  // over b+c; a+b first would strand c
  EXPECT_EQ(pieces(data, "abb"), (Strings{"ab", "b"}));
}

TEST(Bpe, joins_the_leftmost_of_equals) {
  VocabData data = byte_vocab();
  add_merge(data, "a", "a");
  EXPECT_EQ(pieces(data, "aaa"), (Strings{"aa", "a"}));
  EXPECT_EQ(pieces(data, "aaaaa"), (Strings{"aa", "aa", "a"}));
  add_merge(data, "aa", "a");
  EXPECT_EQ(pieces(data, "aaaaa"), (Strings{"aa", "aaa"}));
}

TEST(Bpe, a_token_that_no_merge_makes_is_not_found) {
  VocabData data = byte_vocab();
  add_token(data, "xyz", TokenType::kNormal);
  EXPECT_EQ(pieces(data, "xyz"), (Strings{"x", "y", "z"}));
}

// The definition, slowly: join the best pair where it stands first, one pair at a time.
std::vector<std::string> slow_pieces(const VocabData& data, std::string_view text) {
  std::vector<std::string> parts;
  for (const char byte : text) {
    parts.push_back(strata::testing::byte_text(static_cast<unsigned char>(byte)));
  }
  for (;;) {
    auto best = data.merges.end();
    size_t where = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = std::find(data.merges.begin(), best, parts[i] + " " + parts[i + 1]);
      if (found == best) continue;
      best = found;
      where = i;
    }
    if (best == data.merges.end()) return parts;
    parts[where] += parts[where + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(where) + 1);
  }
}

TEST(Bpe, equals_the_slow_definition) {
  std::mt19937 random(20240229);
  const std::string alphabet = "ab c\xC3\xA9";
  for (int round = 0; round < 40; ++round) {
    VocabData data = byte_vocab();
    std::vector<std::string> parts;
    for (const char byte : alphabet) parts.emplace_back(1, byte);
    std::set<std::string> known(parts.begin(), parts.end());
    for (int merge = 0; merge < 40; ++merge) {
      const std::string left = parts[random() % parts.size()];
      const std::string right = parts[random() % parts.size()];
      if (!known.insert(left + right).second) continue;
      add_merge(data, left, right);
      parts.push_back(left + right);
    }
    // Merges of a file need not come in an order in which their parts exist.
    std::shuffle(data.merges.begin(), data.merges.end(), random);
    for (int n : {1, 2, 7, 60, 150}) {
      std::string text;
      while (n-- > 0) text += alphabet[random() % alphabet.size()];
      const Strings expected = slow_pieces(data, text);
      Strings found;
      for (const std::string& piece : pieces(data, text)) {
        found.push_back(strata::testing::byte_text(piece));
      }
      ASSERT_EQ(found, expected) << "round " << round << ": " << text;
    }
  }
}

// Found by fuzzing: text that says "ab" must not become a control token, nor one whose text is not
// in the byte alphabet.
TEST(Bpe, merges_have_normal_tokens_only) {
  for (const TokenType type :
       {TokenType::kUnknown, TokenType::kControl, TokenType::kUserDefined, TokenType::kUnused}) {
    VocabData data = byte_vocab();
    add_merge(data, "a", "b");
    data.types.back() = static_cast<int32_t>(type);
    const Vocab vocab(data);
    try {
      const Bpe bpe(vocab, data.merges);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorruptFile);
      EXPECT_THAT(error.what(), HasSubstr("merge 0 (\"a b\") has the token 256"));
    }
  }
}

TEST(Bpe, bad_merges_are_refused) {
  const auto expect_bad = [](const std::string& merge, const std::string& what) {
    VocabData data = byte_vocab();
    add_merge(data, "a", "b");
    data.merges.push_back(merge);
    const Vocab vocab(data);
    try {
      const Bpe bpe(vocab, data.merges);
      ADD_FAILURE() << "no error for: " << merge;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorruptFile);
      EXPECT_THAT(error.what(), HasSubstr("merge 1"));
      EXPECT_THAT(error.what(), HasSubstr(what));
    }
  };
  expect_bad("", "not two token texts");
  expect_bad(" ", "not two token texts");
  expect_bad("ab", "not two token texts");
  expect_bad("a ", "not two token texts");
  expect_bad(" b", "not two token texts");
  expect_bad("a b c", "not two token texts");
  expect_bad("zz b", "names no token: \"zz\"");
  expect_bad("a zz", "names no token: \"zz\"");
  expect_bad("b a", "names no token: \"ba\"");
  expect_bad("a b", "comes twice");
  // The message stays fit for a terminal.
  expect_bad("\x1b[2J b", "\\x1b[2J");
  expect_bad(std::string(1 << 20, 'x') + " b", "...");
}

}  // namespace
}  // namespace strata::text
