#include "strata/text/grammar/stack_pool.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace strata::text {
namespace {

std::vector<uint32_t> content(const StackPool& pool, uint32_t stack) {
  std::vector<uint32_t> states;
  for (; stack > StackPool::kUnknown; stack = pool.below(stack)) states.push_back(pool.top(stack));
  states.push_back(stack);
  return states;
}

TEST(StackPool, equal_stacks_have_one_number) {
  StackPool pool;
  const uint32_t a = pool.push(7, StackPool::kBottom);
  const uint32_t b = pool.push(8, a);
  EXPECT_EQ(pool.push(7, StackPool::kBottom), a);
  EXPECT_EQ(pool.push(8, a), b);
  EXPECT_NE(pool.push(7, StackPool::kUnknown), a);
  EXPECT_EQ(content(pool, b), (std::vector<uint32_t>{8, 7, StackPool::kBottom}));
  EXPECT_EQ(pool.depth(b), 2u);
}

TEST(StackPool, random_pushes_truncations_and_clearings) {
  std::mt19937 random(7);
  StackPool pool;
  std::vector<Configuration> live;
  std::vector<std::vector<uint32_t>> expected;
  for (int round = 0; round < 3000; ++round) {
    const size_t size = pool.size();
    const uint32_t below =
        live.empty() || random() % 8 == 0 ? random() % 2 : live[random() % live.size()].stack;
    const uint32_t state = 1 + random() % 5;
    const uint32_t stack = pool.push(state, below);
    ASSERT_EQ(pool.push(state, below), stack);
    for (size_t i = 0; i < live.size(); ++i) {
      const bool equal = content(pool, live[i].stack) == content(pool, stack);
      ASSERT_EQ(equal, live[i].stack == stack);
    }
    if (random() % 4 == 0) {
      pool.truncate(size);
    } else {
      live.push_back({state, stack});
      expected.push_back(content(pool, stack));
    }
    if (random() % 50 == 0) {
      while (live.size() > 20) {
        live.erase(live.begin());
        expected.erase(expected.begin());
      }
      pool.keep(live);
      ASSERT_LE(pool.size(), 2u + 20u * 4096u);
    }
    for (size_t i = 0; i < live.size(); ++i) ASSERT_EQ(content(pool, live[i].stack), expected[i]);
  }
}

TEST(StackPool, depth_is_bounded) {
  StackPool pool;
  uint32_t stack = StackPool::kBottom;
  for (uint32_t i = 0; i < StackPool::kMaxDepth; ++i) stack = pool.push(1, stack);
  ASSERT_NE(stack, StackPool::kNone);
  EXPECT_EQ(pool.push(1, stack), StackPool::kNone);
  const size_t size = pool.size();
  std::vector<Configuration> none;
  pool.keep(none);
  EXPECT_LT(pool.size(), size);
  EXPECT_NE(pool.push(1, StackPool::kBottom), StackPool::kNone);
}

}  // namespace
}  // namespace strata::text
