#include "strata/base/os/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <utility>

namespace strata::os {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(Descriptor, WhatIsAssignedOverIsClosedAtOnce) {
  Descriptor first = open_descriptor("/dev/null", O_RDONLY | O_CLOEXEC);
  Descriptor second = open_descriptor("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  const int old = first.get(), kept = second.get();
  first = std::move(second);
  EXPECT_FALSE(is_open(old));
  EXPECT_EQ(first.get(), kept);
  EXPECT_TRUE(is_open(kept));
  first.reset();
  EXPECT_FALSE(first);
  EXPECT_FALSE(is_open(kept));
}

TEST(Descriptor, AFailureLeavesTheReason) {
  const Descriptor none = open_descriptor("/no/such/file", O_RDONLY | O_CLOEXEC);
  EXPECT_FALSE(none);
  EXPECT_EQ(describe(errno), "No such file or directory");
}

}  // namespace
}  // namespace strata::os
