#include "strata/text/special_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "strata/base/error.h"
#include "tests/support/vocab.h"

namespace strata::text {
namespace {

using strata::testing::add_token;
using strata::testing::byte_vocab;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

VocabData vocab_with(const std::vector<std::string>& special) {
  VocabData data = byte_vocab();
  for (const std::string& text : special) add_token(data, text, TokenType::kControl);
  return data;
}

std::vector<std::string> find_all(const VocabData& data, std::string_view text) {
  const Vocab vocab(data);
  const SpecialTokens special(vocab);
  std::vector<std::string> found;
  size_t from = 0;
  while (const auto match = special.find(text, from)) {
    EXPECT_EQ(vocab.piece(match->id), text.substr(match->begin, match->end - match->begin));
    found.emplace_back(vocab.piece(match->id));
    from = match->end;
  }
  return found;
}

TEST(SpecialTokens, first_and_longest) {
  const VocabData data = vocab_with({"<a>", "<a>b", "<a>bcd", "bc", "\xE2\x82\xAC", "<<x"});
  EXPECT_THAT(find_all(data, ""), IsEmpty());
  EXPECT_THAT(find_all(data, "<a"), IsEmpty());
  EXPECT_THAT(find_all(data, "<a>"), ElementsAre("<a>"));
  EXPECT_THAT(find_all(data, "<a>bc"), ElementsAre("<a>b"));
  EXPECT_THAT(find_all(data, "<a>bcd"), ElementsAre("<a>bcd"));
  EXPECT_THAT(find_all(data, "<<a>_bc<<x"), ElementsAre("<a>", "bc", "<<x"));
  EXPECT_THAT(find_all(data, "<<<x"), ElementsAre("<<x"));
  EXPECT_THAT(find_all(data, "10\xE2\x82\xAC"), ElementsAre("\xE2\x82\xAC"));
  EXPECT_THAT(find_all(data, "10\xE2\x82"), IsEmpty());
}

TEST(SpecialTokens, only_control_and_user_defined) {
  VocabData data = byte_vocab();
  add_token(data, "<control>", TokenType::kControl);
  add_token(data, "<user>", TokenType::kUserDefined);
  add_token(data, "<normal>", TokenType::kNormal);
  add_token(data, "<unused>", TokenType::kUnused);
  add_token(data, "<unknown>", TokenType::kUnknown);
  add_token(data, "", TokenType::kControl);
  EXPECT_THAT(find_all(data, "<unused><normal><user><unknown><control>"),
              ElementsAre("<user>", "<control>"));
}

TEST(SpecialTokens, equals_the_slow_definition) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> special;
    for (int i = 0; i < 8; ++i) {
      std::string token = "<";
      for (size_t n = random() % 5 + 1; n > 0; --n) token += "<a>"[random() % 3];
      if (std::find(special.begin(), special.end(), token) == special.end()) {
        special.push_back(token);
      }
    }
    std::string text;
    for (int i = 0; i < 60; ++i) text += "<a>"[random() % 3];
    std::vector<std::string> expected;
    for (size_t pos = 0; pos < text.size();) {
      std::string best;
      for (const std::string& token : special) {
        if (token.size() > best.size() && text.compare(pos, token.size(), token) == 0) best = token;
      }
      if (!best.empty()) expected.push_back(best);
      pos += std::max<size_t>(best.size(), 1);
    }
    ASSERT_EQ(find_all(vocab_with(special), text), expected) << text;
  }
}

TEST(SpecialTokens, length_is_bounded) {
  const Vocab longest(vocab_with({std::string(SpecialTokens::kMaxBytes, 'x')}));
  EXPECT_NO_THROW(SpecialTokens{longest});
  const Vocab longer(vocab_with({std::string(SpecialTokens::kMaxBytes + 1, 'x')}));
  try {
    const SpecialTokens special(longer);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorruptFile);
    EXPECT_THAT(error.what(), HasSubstr("special token 256 has 257 bytes"));
  }
}

}  // namespace
}  // namespace strata::text
