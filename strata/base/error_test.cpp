#include "strata/base/error.h"

#include <gtest/gtest.h>

#include "strata/base/format.h"

namespace strata {
namespace {

TEST(Error, ContextStandsOutermostFirst) {
  Error error(ErrorCode::kCorruptFile, format("tensor {} ends at byte {} of {}", "t", 912, 800));
  error.with("reading the tensor table").with("loading m.gguf");
  EXPECT_STREQ(error.what(),
               "loading m.gguf: reading the tensor table: tensor t ends at byte 912 of 800");
  EXPECT_EQ(error.message(), "tensor t ends at byte 912 of 800");
  EXPECT_EQ(exit_code(error.code()), 65);
}

}  // namespace
}  // namespace strata
