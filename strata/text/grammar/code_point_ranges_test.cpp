#include "strata/text/grammar/code_point_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "strata/text/utf8.h"

namespace strata::text {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CodePointRanges, normalised_is_sorted_disjoint_and_without_surrogates) {
  EXPECT_THAT(normalised({}), IsEmpty());
  EXPECT_THAT(normalised({{5, 9}, {1, 2}, {3, 4}, {7, 12}}), ElementsAre(CodePointRange{1, 12}));
  EXPECT_THAT(normalised({{5, 4}}), IsEmpty());
  EXPECT_THAT(normalised({{0xD800, 0xDFFF}, {0x110000, 0x120000}}), IsEmpty());
  EXPECT_THAT(normalised({{0, 0x120000}}),
              ElementsAre(CodePointRange{0, 0xD7FF}, CodePointRange{0xE000, 0x10FFFF}));
}

TEST(CodePointRanges, complement_and_intersection) {
  const CodePointRanges all = normalised({{0, kLastCodePoint}});
  EXPECT_THAT(complement(all), IsEmpty());
  EXPECT_EQ(complement({}), all);
  const CodePointRanges some = normalised({{0, 4}, {'a', 'z'}, {0xE000, 0xE010}});
  EXPECT_EQ(complement(complement(some)), some);
  EXPECT_THAT(intersection(some, complement(some)), IsEmpty());
  EXPECT_EQ(intersection(some, all), some);
  EXPECT_THAT(
      intersection(some, {{3, 'c'}, {'x', 'y'}}),
      ElementsAre(CodePointRange{3, 4}, CodePointRange{'a', 'c'}, CodePointRange{'x', 'y'}));
}

bool in(const std::vector<ByteSequence>& sequences, const std::string& bytes) {
  int n_found = 0;
  for (const ByteSequence& sequence : sequences) {
    if (sequence.n_bytes != static_cast<int>(bytes.size())) continue;
    bool inside = true;
    for (size_t i = 0; i < bytes.size(); ++i) {
      const auto byte = static_cast<uint8_t>(bytes[i]);
      inside = inside && byte >= sequence.bytes[i].first && byte <= sequence.bytes[i].last;
    }
    n_found += inside;
  }
  EXPECT_LE(n_found, 1) << "sequences overlap";
  return n_found == 1;
}

TEST(CodePointRanges, utf8_sequences_hold_their_characters_alone) {
  const std::vector<CodePointRange> ranges = {
      {0, kLastCodePoint}, {0x41, 0x5A},     {0x7F, 0x80},      {0x7FF, 0x800},
      {0xFFFF, 0x10000},   {0x390, 0xA123},  {0xE001, 0x1F602}, {0x10FFFE, kLastCodePoint},
      {0xE9, 0xE9},        {0xD700, 0xD7FF}, {0x3FFFF, 0x40001}};
  for (const CodePointRange& range : ranges) {
    std::vector<ByteSequence> sequences;
    for (const CodePointRange& piece : normalised({range})) {
      append_utf8_sequences(piece, sequences);
    }
    EXPECT_LE(sequences.size(), 24u);
    for (char32_t c = 0; c <= kLastCodePoint; c += c < 0x3000 ? 1 : 61) {
      if (!is_scalar(c)) continue;
      std::string bytes;
      append_utf8(bytes, c);
      ASSERT_EQ(valid_utf8_prefix(bytes), bytes.size());
      ASSERT_EQ(in(sequences, bytes), c >= range.first && c <= range.last)
          << std::hex << uint32_t{c} << " in " << uint32_t{range.first} << ".."
          << uint32_t{range.last};
    }
    for (const char32_t c : {range.first, range.last}) {
      std::string bytes;
      append_utf8(bytes, c);
      EXPECT_TRUE(in(sequences, bytes));
    }
    EXPECT_FALSE(in(sequences, "\xC0\x80"));
    EXPECT_FALSE(in(sequences, "\xED\xA0\x80"));
    EXPECT_FALSE(in(sequences, "\xF4\x90\x80\x80"));
  }
}

}  // namespace
}  // namespace strata::text
