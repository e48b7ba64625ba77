#include "strata/text/utf8_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "strata/base/error.h"
#include "strata/text/tokenizer.h"
#include "strata/text/utf8.h"
#include "tests/support/vocab.h"

namespace strata::text {
namespace {

using strata::testing::add_merge;
using strata::testing::add_token;
using strata::testing::byte_vocab;

// Feeds the parts, checks that each result is whole characters, and joins them.
std::string stream(const std::vector<std::string>& parts) {
  Utf8Stream utf8;
  std::string out;
  for (const std::string& part : parts) {
    const std::string text = utf8.append(part);
    EXPECT_EQ(valid_utf8_prefix(text), text.size());
    EXPECT_LE(utf8.pending().size(), 3U);
    out += text;
  }
  out += utf8.finish();
  EXPECT_EQ(utf8.pending(), "");
  EXPECT_EQ(utf8.finish(), "");
  return out;
}

TEST(Utf8Stream, holds_back_what_is_incomplete) {
  Utf8Stream utf8;
  EXPECT_EQ(utf8.append("a\xF0\x9F"), "a");
  EXPECT_EQ(utf8.pending(), "\xF0\x9F");
  EXPECT_EQ(utf8.append("\x98"), "");
  EXPECT_EQ(utf8.append("\x80z\xC3"), "\U0001F600z");
  EXPECT_EQ(utf8.append(""), "");
  EXPECT_EQ(utf8.finish(), "\uFFFD");
  EXPECT_EQ(utf8.append("\xA9"), "\uFFFD");  // finish forgot the lead byte
}

TEST(Utf8Stream, bad_bytes_are_replaced_at_once) {
  EXPECT_EQ(stream({"\xFF"}), "\uFFFD");
  EXPECT_EQ(stream({"a\x80"
                    "b"}),
            "a\uFFFDb");
  EXPECT_EQ(stream({"\xE2\x82", "x"}), "\uFFFDx");
  EXPECT_EQ(stream({"\xE2", "\x82", "\xE2\x82\xAC"}), "\uFFFD\u20AC");
  EXPECT_EQ(stream({"\xED\xA0\x80"}), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(stream({"\xF0\x9F\x98"}), "\uFFFD");
  EXPECT_EQ(stream({"\uFFFD"}), "\uFFFD");
}

TEST(Utf8Stream, cuts_do_not_matter) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) {
      constexpr std::string_view kParts[] = {"a",    "\u00E9", "\u20AC", "\U0001F600", "\xF0",
                                             "\x9F", "\x80",   "\xE2",   "\xED",       "\xC3"};
      text += kParts[random() % std::size(kParts)];
    }
    std::vector<std::string> parts;
    for (size_t pos = 0; pos < text.size();) {
      const size_t n = random() % 4;
      parts.push_back(text.substr(pos, n));
      pos += n;
    }
    ASSERT_EQ(stream(parts), stream({text}));
  }
}

// Token ids of a chain, one by one.
std::vector<std::string> deltas(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  Utf8Stream stream;
  std::vector<std::string> out;
  for (const int32_t id : ids) out.push_back(stream.append(tokenizer.piece(id)));
  out.push_back(stream.finish());
  for (const std::string& delta : out) EXPECT_EQ(valid_utf8_prefix(delta), delta.size());
  return out;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += part;
  return text;
}

TEST(DetokenizerFieldCases, F015_deltas_are_whole_characters) {
  VocabData data = byte_vocab();
  add_merge(data, "\xF0", "\x9F");  // 256
  add_merge(data, "\x98", "\x80");  // 257
  const Tokenizer tokenizer(data);

  // An emoji as 2 + 2 bytes, a CJK character as 1 + 1 + 1.
  EXPECT_THAT(deltas(tokenizer, {256, 257}), ::testing::ElementsAre("", "\U0001F600", ""));
  EXPECT_THAT(deltas(tokenizer, {0xE4, 0xB8, 0xAD, 'x'}),
              ::testing::ElementsAre("", "", "\u4E2D", "x", ""));

  // A family of three, joined by U+200D, inside the argument of a tool call.
  const std::string family = "\U0001F468\u200D\U0001F469\u200D\U0001F467";
  const std::string call =
      "<tool_call>\n<function=say>\n<parameter=text>\n" + family + "\n</parameter>\n";
  const std::vector<int32_t> ids = tokenizer.encode(call, SpecialParsing::kNone);
  EXPECT_EQ(joined(deltas(tokenizer, ids)), call);
  EXPECT_EQ(tokenizer.decode(ids), call);

  // Generation ended inside a character: it is resolved at the end and nowhere else.
  EXPECT_THAT(deltas(tokenizer, {'a', 256}), ::testing::ElementsAre("a", "", "\uFFFD"));
}

TEST(DetokenizerFieldCases, F015_every_cut_of_every_character_length) {
  const Tokenizer demo(strata::testing::demo_vocab());
  const std::string text =
      "na\u00EFve \u20AC5 \u4E2D\u6587 \U0001F468\u200D\U0001F469 e\u0301 \U0010FFFD";
  EXPECT_EQ(joined(deltas(demo, demo.encode(text, SpecialParsing::kNone))), text);
  const Tokenizer bytes(byte_vocab());
  EXPECT_EQ(joined(deltas(bytes, bytes.encode(text, SpecialParsing::kNone))), text);
}

}  // namespace
}  // namespace strata::text
