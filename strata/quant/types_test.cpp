#include "strata/quant/types.h"

#include <gtest/gtest.h>

#include <limits>

#include "strata/base/error.h"

namespace strata::quant {
namespace {

TEST(Types, EveryTypeIsFoundByIdAndName) {
  EXPECT_EQ(all_types().size(), 31U);
  for (const TypeTraits& t : all_types()) {
    SCOPED_TRACE(t.name);
    EXPECT_EQ(find_type(static_cast<uint32_t>(t.type)), &t);
    EXPECT_EQ(find_type(t.name), &t);
    EXPECT_EQ(&traits(t.type), &t);
    EXPECT_EQ(reserved_type_name(static_cast<uint32_t>(t.type)), "");
  }
  EXPECT_EQ(find_type("q4_k"), &traits(Type::kQ4_K));
  EXPECT_EQ(find_type("Q4_"), nullptr);
  EXPECT_EQ(find_type(""), nullptr);
}

TEST(Types, UnknownIdsAreNull) {
  for (uint32_t id : {4U, 5U, 9U, 15U, 31U, 34U, 35U, 38U, 43U, 97U, 0xFFFFFFFFU}) {
    EXPECT_EQ(find_type(id), nullptr) << id;
  }
  EXPECT_EQ(reserved_type_name(34), "TQ1_0");
  EXPECT_EQ(reserved_type_name(1000), "");
}

TEST(Types, RowBytesAreChecked) {
  EXPECT_EQ(row_bytes(Type::kF32, 3), 12U);
  EXPECT_EQ(row_bytes(Type::kIQ4_NL, 160), 90U);
  EXPECT_EQ(row_bytes(Type::kQ2_0, 640), 180U);
  EXPECT_EQ(row_bytes(Type::kQ6_K, 2560), 2100U);
  EXPECT_EQ(row_bytes(Type::kQ6_K, 0), 0U);
  EXPECT_FALSE(find_row_bytes(Type::kQ6_K, 640).has_value());
  EXPECT_FALSE(find_row_bytes(Type::kI64, std::numeric_limits<uint64_t>::max()).has_value());
  try {
    row_bytes(Type::kQ1_0, 320);
    FAIL() << "320 is no multiple of 128";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(e.message().find("Q1_0"), std::string::npos);
  }
}

}  // namespace
}  // namespace strata::quant
