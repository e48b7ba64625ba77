#include "strata/text/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace strata::text {
namespace {

// Writes any 21-bit value in `length` bytes, well-formed or not.
std::string write(uint32_t value, int length) {
  if (length == 1) return {static_cast<char>(value)};
  constexpr uint8_t kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  std::string text(static_cast<size_t>(length), '\0');
  for (int i = length - 1; i > 0; --i, value >>= 6) {
    text[static_cast<size_t>(i)] = static_cast<char>(0x80 | (value & 0x3F));
  }
  text[0] = static_cast<char>(kLead[length] | value);
  return text;
}

int length_of(uint32_t value) {
  return value < 0x80 ? 1 : value < 0x800 ? 2 : value < 0x10000 ? 3 : 4;
}

TEST(Utf8, every_value_in_every_length) {
  for (uint32_t value = 0; value < 0x200000; ++value) {
    for (int length = length_of(value); length <= 4; ++length) {
      const std::string text = write(value, length);
      const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
      const bool good = length == length_of(value) && !surrogate && value <= 0x10FFFF;
      const Utf8Step step = utf8_step(text);
      ASSERT_EQ(step.status == Utf8Status::kValid, good) << std::hex << value << " in " << length;
      ASSERT_EQ(valid_utf8_prefix(text), good ? text.size() : 0) << std::hex << value;
      ASSERT_EQ(step.length, good ? length : 1) << std::hex << value;
    }
  }
}

TEST(Utf8, cut_characters_are_incomplete) {
  for (const uint32_t value :
       {0x80U, 0x7FFU, 0x800U, 0xD7FFU, 0xE000U, 0xFFFFU, 0x10000U, 0x1F600U, 0x10FFFFU}) {
    const std::string text = write(value, length_of(value));
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const Utf8Step step = utf8_step(std::string_view(text).substr(0, cut));
      EXPECT_EQ(step.status, Utf8Status::kIncomplete) << std::hex << value;
      EXPECT_EQ(step.length, cut) << std::hex << value;
    }
  }
}

TEST(Utf8, invalid_covers_the_maximal_subpart) {
  const struct {
    std::string_view text;
    int length;
  } cases[] = {
      {"\x80", 1},          {"\xBF", 1},      {"\xFE", 1},         {"\xFF", 1},
      {"\xC3(", 1},         {"\xE2\x82(", 2}, {"\xE2(\xA1", 1},    {"\xF0\x9F\x98(", 3},
      {"\xF0\x9F(\x98", 2}, {"\xF0(\x9F", 1}, {"\xED\xA0\x80", 1}, {"\xE0\x80\x80", 1},
      {"\xF4\x90\x80", 1},  {"\xC0\xAF", 1},  {"\xF5\x80", 1},     {"\xE2\x82\xE2\x82\xAC", 2},
  };
  for (const auto& c : cases) {
    const Utf8Step step = utf8_step(c.text);
    EXPECT_EQ(step.status, Utf8Status::kInvalid) << c.text;
    EXPECT_EQ(step.length, c.length) << c.text;
  }
}

TEST(Utf8, valid_prefix_ends_at_the_first_bad_byte) {
  EXPECT_EQ(valid_utf8_prefix(""), 0U);
  EXPECT_EQ(valid_utf8_prefix("na\xC3\xAFve"), 6U);
  EXPECT_EQ(valid_utf8_prefix("ab\xFF"
                              "cd"),
            2U);
  EXPECT_EQ(valid_utf8_prefix("ab\xE2\x82"), 2U);
}

}  // namespace
}  // namespace strata::text
