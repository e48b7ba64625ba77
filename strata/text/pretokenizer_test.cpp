#include "strata/text/pretokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "strata/base/error.h"

namespace strata::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> split(std::string_view pre, std::string_view text) {
  std::vector<std::string_view> views;
  Pretokenizer(pre).split(text, views);
  return {views.begin(), views.end()};
}
std::vector<std::string> split(std::string_view text) { return split("qwen35", text); }

TEST(Pretokenizer, words_and_contractions) {
  EXPECT_THAT(split(""), IsEmpty());
  EXPECT_THAT(split("Hello world"), ElementsAre("Hello", " world"));
  EXPECT_THAT(split("I'm we'LL they'Ve 'tis"),
              ElementsAre("I", "'m", " we", "'LL", " they", "'Ve", " '", "tis"));
  EXPECT_THAT(split("'tis"), ElementsAre("'t", "is"));
  EXPECT_THAT(split("'quoted'"), ElementsAre("'quoted", "'"));
  EXPECT_THAT(split("(word)$x"), ElementsAre("(word", ")$", "x"));
}

TEST(Pretokenizer, digits_stand_alone) {
  EXPECT_THAT(split("a12 3"), ElementsAre("a", "1", "2", " ", "3"));
  EXPECT_THAT(split("\u0661\u00BD"), ElementsAre("\u0661", "\u00BD"));
}

TEST(Pretokenizer, punctuation_takes_its_line_ends) {
  EXPECT_THAT(split("x ;;\r\n\ny"), ElementsAre("x", " ;;\r\n\n", "y"));
}

TEST(Pretokenizer, white_space) {
  EXPECT_THAT(split("a   b"), ElementsAre("a", "  ", " b"));
  EXPECT_THAT(split("a  "), ElementsAre("a", "  "));
  EXPECT_THAT(split("a \n \n  b"), ElementsAre("a", " \n \n", " ", " b"));
  EXPECT_THAT(split("a\t\tb"), ElementsAre("a", "\t", "\tb"));
  EXPECT_THAT(split("\n\n1"), ElementsAre("\n\n", "1"));
  EXPECT_THAT(split("  1"), ElementsAre(" ", " ", "1"));
  // NEL, no-break space and the ideographic space are white; U+180E and U+200B are not.
  EXPECT_THAT(split("\u0085\u00A0\u3000"), ElementsAre("\u0085\u00A0\u3000"));
  EXPECT_THAT(split(" \u180E\u180E "), ElementsAre(" \u180E\u180E", " "));
  EXPECT_THAT(split(" \u200B\u200B "), ElementsAre(" \u200B\u200B", " "));
}

TEST(Pretokenizer, combining_marks_are_letters_in_qwen35_only) {
  const std::string text = "e\u0301e \u0301\u0301";
  EXPECT_THAT(split("qwen35", text), ElementsAre("e\u0301e", " \u0301\u0301"));
  EXPECT_THAT(split("qwen2", text), ElementsAre("e", "\u0301e", " \u0301\u0301"));
  EXPECT_THAT(split("qwen35", "a,\u0301b"), ElementsAre("a", ",\u0301b"));
  EXPECT_THAT(split("qwen2", "a,\u0301b"), ElementsAre("a", ",\u0301", "b"));
}

TEST(Pretokenizer, bytes_that_are_no_utf8_are_pieces) {
  EXPECT_THAT(split("\xFF"), ElementsAre("\xFF"));
  EXPECT_THAT(split("ab\xFF\xFE\xE2\x82"
                    "cd"),
              ElementsAre("ab", "\xFF\xFE\xE2\x82", "cd"));
  EXPECT_THAT(split("ab  \xFF"), ElementsAre("ab", "  ", "\xFF"));
  EXPECT_THAT(split("ab \xF0\x9F\x98"), ElementsAre("ab", " ", "\xF0\x9F\x98"));
}

TEST(Pretokenizer, moving_keeps_it_working) {
  Pretokenizer first("qwen2");
  const Pretokenizer second = std::move(first);
  std::vector<std::string_view> pieces;
  second.split("a b", pieces);
  EXPECT_THAT(pieces, ElementsAre("a", " b"));
}

TEST(Pretokenizer, unknown_names_are_refused) {
  for (const std::string name : {"", "llama-bpe", "qwen3", "QWEN35"}) {
    try {
      const Pretokenizer pretokenizer(name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
      EXPECT_THAT(error.what(), HasSubstr("\"" + name + "\""));
    }
  }
}

}  // namespace
}  // namespace strata::text
