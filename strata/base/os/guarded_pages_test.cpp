#include "strata/base/os/guarded_pages.h"

#include <gtest/gtest.h>

namespace strata::os {
namespace {

unsigned char touch(const std::byte* at) {
  return *static_cast<const volatile unsigned char*>(static_cast<const void*>(at));
}

TEST(GuardedPages, KeepTheirBytesWhileClosed) {
  GuardedPages pages(10'000);
  ASSERT_NE(pages.data(), nullptr);
  pages.data()[9'999] = std::byte{7};
  pages.set_open(false);
  GuardedPages moved = std::move(pages);
  EXPECT_EQ(pages.data(), nullptr);  // NOLINT(bugprone-use-after-move): that is what is asked
  moved.set_open(true);
  EXPECT_EQ(touch(moved.data() + 9'999), 7);
}

TEST(GuardedPages, NoBytesAndTooMany) {
  GuardedPages none(0);
  EXPECT_NE(none.data(), nullptr);
  EXPECT_EQ(GuardedPages(Bytes{1} << 62).data(), nullptr);
  EXPECT_EQ(GuardedPages(~Bytes{0}).data(), nullptr);
}

TEST(GuardedPagesDeathTest, AClosedPageIsNotTouched) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  GuardedPages pages(1);
  EXPECT_EQ(touch(pages.data()), 0);
  pages.set_open(false);
  EXPECT_DEATH(touch(pages.data()), "");
}

}  // namespace
}  // namespace strata::os
