#include "strata/gguf/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <limits>
#include <string>
#include <vector>

#include "strata/base/error.h"
#include "strata/gguf/test_files.h"

namespace strata::gguf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace strata::gguf::testing;

template <class Action>
std::string message(Action action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kCorruptFile) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

class MetadataTest : public ::testing::Test {
 protected:
  Model model_ = open_bytes(small_file());
  const Metadata& metadata_ = model_.metadata();
};

TEST_F(MetadataTest, KeepsTheOrderOfTheFile) {
  EXPECT_EQ(metadata_.entries()[0].key, "general.architecture");
  EXPECT_EQ(metadata_.entries()[1].key, "a.u8");
  EXPECT_EQ(metadata_.entries().back().key, "l.empty");
  EXPECT_EQ(metadata_.file(), "test.gguf");
}

TEST_F(MetadataTest, EveryIntegerWidth) {
  EXPECT_EQ(metadata_.get_u64("a.u8"), 200u);
  EXPECT_EQ(metadata_.get_u64("a.u16"), 60'000u);
  EXPECT_EQ(metadata_.get_u64("a.u32"), 4'000'000'000u);
  EXPECT_EQ(metadata_.get_u64("a.u64"), 18'000'000'000'000'000'000u);
  EXPECT_EQ(metadata_.get_i64("a.u32"), 4'000'000'000);
  EXPECT_EQ(metadata_.get_i64("a.i8"), -100);
  EXPECT_EQ(metadata_.get_i64("a.i16"), -30'000);
  EXPECT_EQ(metadata_.get_i64("a.i32"), -2'000'000'000);
  EXPECT_EQ(metadata_.get_i64("a.i64"), -9'000'000'000'000'000'000);
}

TEST_F(MetadataTest, NumbersBoolsStrings) {
  EXPECT_EQ(metadata_.get_f64("a.f32"), double{0.1f});
  EXPECT_EQ(metadata_.get_f64("a.f64"), 0.1);
  EXPECT_EQ(metadata_.get_f64("a.i8"), -100.0);
  EXPECT_EQ(metadata_.find_bool("a.bool"), true);
  EXPECT_EQ(metadata_.get_string("a.empty"), "");
  EXPECT_EQ(metadata_.get_string("general.architecture"), "small");
}

TEST_F(MetadataTest, Arrays) {
  EXPECT_THAT(metadata_.get_u64s("l.u64"), ElementsAre(1u, 2u, 1ull << 60));
  EXPECT_THAT(metadata_.get_i64s("l.u64"), ElementsAre(1, 2, 1ll << 60));
  EXPECT_THAT(metadata_.get_i64s("l.i32"), ElementsAre(-1, 0, 7));
  EXPECT_THAT(metadata_.get_strings("l.strings"), ElementsAre("", "one", "zwei"));
  // Nothing in it that could be of another type.
  EXPECT_TRUE(metadata_.get_strings("l.empty").empty());
  EXPECT_TRUE(metadata_.get_u64s("l.empty").empty());
  EXPECT_TRUE(metadata_.is_array("l.u64"));
  EXPECT_FALSE(metadata_.is_array("a.u8"));
  EXPECT_FALSE(metadata_.is_array("nope"));
}

TEST_F(MetadataTest, AbsentKeys) {
  EXPECT_EQ(metadata_.find("nope"), nullptr);
  EXPECT_FALSE(metadata_.contains("nope"));
  EXPECT_FALSE(metadata_.find_u64("nope"));
  EXPECT_FALSE(metadata_.find_strings("nope"));
  EXPECT_THAT(message([&] { metadata_.get_u64("a.nope"); }),
              HasSubstr("test.gguf: the key a.nope is missing"));
}

TEST_F(MetadataTest, WrongTypesNameKeyAndBothTypes) {
  EXPECT_THAT(message([&] { metadata_.find_u64("a.empty"); }),
              HasSubstr("the key a.empty is of type string, wanted: an integer of 0 or more"));
  EXPECT_THAT(message([&] { metadata_.find_u64("a.f32"); }), HasSubstr("the f32 0.1"));
  EXPECT_THAT(message([&] { metadata_.find_u64("a.bool"); }), HasSubstr("of type bool"));
  EXPECT_THAT(message([&] { metadata_.find_string("l.u64"); }),
              HasSubstr("of type array of 3 u64, wanted: a string"));
  EXPECT_THAT(message([&] { metadata_.find_u64s("a.u8"); }),
              HasSubstr("of type u8, wanted: an array of integers"));
  EXPECT_THAT(message([&] { metadata_.find_u64s("l.strings"); }),
              HasSubstr("array of 3 strings, wanted: an array of integers"));
  EXPECT_THAT(message([&] { metadata_.find_strings("l.i32"); }),
              HasSubstr("array of 3 i32, wanted: an array of strings"));
}

TEST_F(MetadataTest, ValuesThatDoNotFitAreNamed) {
  EXPECT_THAT(message([&] { metadata_.find_u64("a.i8"); }), HasSubstr("the i8 -100"));
  EXPECT_THAT(message([&] { metadata_.find_i64("a.u64"); }),
              HasSubstr("the u64 18000000000000000000"));
  EXPECT_THAT(message([&] { metadata_.find_bool("a.u8"); }), HasSubstr("the u8 200"));
  EXPECT_THAT(message([&] { metadata_.find_u64s("l.i32"); }), HasSubstr("element 0 is the i32 -1"));
  EXPECT_THAT(message([&] { metadata_.find_bools("l.i32"); }), HasSubstr("element 0"));
}

TEST(Metadata, ABoolMayBeAnInteger) {
  Writer writer;
  writer.add("zero", uint32_t{0});
  writer.add("one", int8_t{1});
  writer.add_array("list", std::vector<int32_t>{0, 1, 1});
  const Model model = open_bytes(write_bytes(writer));
  EXPECT_EQ(model.metadata().find_bool("zero"), false);
  EXPECT_EQ(model.metadata().find_bool("one"), true);
  EXPECT_EQ(model.metadata().find_bools("list"), (std::vector<bool>{false, true, true}));
}

TEST(Metadata, NestedArraysAndBoolArraysRoundTrip) {
  const uint8_t bits[] = {1, 0, 1};
  Array bools;
  bools.element = ValueType::kBool;
  bools.size = 3;
  bools.raw = std::as_bytes(std::span(bits));
  Array outer;
  outer.element = ValueType::kArray;
  outer.size = 2;
  outer.arrays = {bools, bools};
  Writer writer;
  writer.add("bools", Value(bools));
  writer.add("outer", Value(outer));
  const Model model = open_bytes(write_bytes(writer));
  EXPECT_EQ(model.metadata().find_bools("bools"), (std::vector<bool>{true, false, true}));
  const auto& back = std::get<Array>(*model.metadata().find("outer"));
  ASSERT_EQ(back.arrays.size(), 2u);
  EXPECT_EQ(back.arrays[1].raw[2], std::byte{1});
  EXPECT_EQ(type_text(*model.metadata().find("outer")), "array of 2 arrays");
}

TEST(Metadata, AVocabularyOfAQuarterMillionLoadsFast) {
  std::vector<std::string> tokens;
  for (int i = 0; i < 250'000; ++i) tokens.push_back("token" + std::to_string(i));
  Writer writer;
  writer.add_array("tokens", tokens);
  writer.add_array("merges", tokens);
  const Bytes file = write_bytes(writer);
  const std::clock_t start = std::clock();
  const Model model = open_bytes(file);
  const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_EQ(model.metadata().get_strings("merges")[249'999], "token249999");
  // About 20 ms of the processor; the bound leaves room for sanitizers.
  EXPECT_LT(took, 2.0);
}

}  // namespace
}  // namespace strata::gguf
