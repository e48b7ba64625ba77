#include "strata/text/code_points.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "strata/text/string_search.h"
#include "strata/text/unicode_tables.h"

namespace strata::text {
namespace {

std::string mapped(std::u32string_view text, CaseMapping mapping) {
  std::string out;
  for (const char32_t c : text) append_mapped(out, c, mapping);
  return out;
}

TEST(CodePoints, every_character_survives_and_reads_back_from_both_ends) {
  for (char32_t c = 0; c < 0x110000; c += c < 0x3000 ? 1 : 37) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string bytes = "a";
    append_code_point(bytes, c);
    const CodePoint read = code_point_at(bytes, 1);
    ASSERT_EQ(read.value, c);
    ASSERT_EQ(read.length, bytes.size() - 1);
    ASSERT_EQ(code_point_before(bytes, bytes.size()).value, c);
  }
}

TEST(CodePoints, stray_bytes_are_characters_and_both_directions_agree) {
  uint32_t seed = 1;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (int i = 0; i < 12; ++i) {
      seed = seed * 1664525 + 1013904223;
      constexpr unsigned char kBytes[] = {0x41, 0x80, 0xBF, 0xC3, 0xA9, 0xE2,
                                          0x82, 0xAC, 0xF0, 0x9F, 0x98, 0xED};
      bytes.push_back(static_cast<char>(kBytes[(seed >> 16) % std::size(kBytes)]));
    }
    std::vector<size_t> forward;
    std::string rebuilt;
    for (size_t at = 0; at < bytes.size();) {
      const CodePoint c = code_point_at(bytes, at);
      append_code_point(rebuilt, c.value);
      forward.push_back(at);
      at += c.length;
    }
    EXPECT_EQ(rebuilt, bytes);
    std::vector<size_t> backward;
    for (size_t end = bytes.size(); end > 0;) {
      end -= code_point_before(bytes, end).length;
      backward.insert(backward.begin(), end);
    }
    EXPECT_EQ(forward, backward);
  }
}

TEST(CodePoints, case_mappings) {
  EXPECT_EQ(mapped(U"a\u00e9\u00df\u0149\u01c6\u03c9", CaseMapping::kUpper),
            "A\u00c9SS\u02bcN\u01c4\u03a9");
  EXPECT_EQ(mapped(U"A\u00c9\u0130\u1e9e", CaseMapping::kLower), "a\u00e9i\u0307\u00df");
  EXPECT_EQ(mapped(U"\u01c6\u00df", CaseMapping::kTitle), "\u01c5Ss");
  EXPECT_EQ(mapped(U"\u4e2d\U0001F600", CaseMapping::kUpper), "\u4e2d\U0001F600");
}

TEST(CodePoints, classes) {
  EXPECT_TRUE(character_flags(U'\u00e9') & kAlpha);
  EXPECT_TRUE(character_flags(U'\u0663') & kDecimal);
  EXPECT_FALSE(character_flags(U'\u00b2') & kDecimal);
  EXPECT_TRUE(character_flags(U'\u00b2') & kDigit);
  EXPECT_TRUE(character_flags(U'\u00bd') & kNumeric);
  EXPECT_FALSE(character_flags(U'\u200b') & kPrintable);
  EXPECT_FALSE(character_flags(0x10FFFF) & kPrintable);
}

TEST(StringSearch, agrees_with_the_plain_search) {
  const std::vector<std::string> texts = {"", "a", "aaaa", "abababa", "aabaabaab", "abcabcabd"};
  for (const std::string& text : texts) {
    for (const char* pattern :
         {"", "a", "aa", "ab", "aba", "aab", "abcabd", "b", "zz", "abababab"}) {
      EXPECT_EQ(find_first(text, pattern), text.find(pattern)) << text << " " << pattern;
      EXPECT_EQ(find_last(text, pattern), text.rfind(pattern)) << text << " " << pattern;
      for (size_t end = 0; end <= text.size(); ++end) {
        EXPECT_EQ(find_last(text, pattern, end), text.substr(0, end).rfind(pattern));
      }
    }
  }
}

}  // namespace
}  // namespace strata::text
