#include "strata/memory/machine.h"

#include <gtest/gtest.h>

#include "strata/memory/budget.h"

namespace strata::memory {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20;

TEST(Machine, RatesThatCannotBeAreUnknownAndTold) {
  Machine machine{.cards = {{.name = "a", .link_rate = -1e9, .memory_rate = 8e11},
                            {.name = "b", .link_rate = 25e9, .memory_rate = 1e30}},
                  .ram_rate = 6e10};
  const std::vector<std::string> told = drop_absurd_rates(machine);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_NE(told[0].find("a: a link of -1.0 GB/s"), std::string::npos) << told[0];
  EXPECT_EQ(machine.cards[0].link_rate, 0);
  EXPECT_EQ(machine.cards[0].memory_rate, 8e11);
  EXPECT_EQ(machine.cards[1].link_rate, 25e9);
  EXPECT_EQ(machine.cards[1].memory_rate, 0);
  EXPECT_EQ(machine.ram_rate, 6e10);
}

TEST(Budget, IsTheLeastOfWhatLimitsItLessTheReserve) {
  const Card card{.name = "c", .total = 12000 * kMiB, .used_by_others = 600 * kMiB};
  EXPECT_EQ(card_budget(card, true, {.reserve_first = 1000 * kMiB}).bytes, 10400 * kMiB);
  EXPECT_EQ(card_budget(card, false, {.reserve_later = 100 * kMiB}).bytes, 11300 * kMiB);
  EXPECT_EQ(card_budget(card, true, {.reserve_first = 0, .limit = 4000 * kMiB}).bytes, 3400 * kMiB);
  EXPECT_EQ(card_budget(card, true, {.reserve_first = 20000 * kMiB}).bytes, 0u);
  Card windows = card;
  windows.os_budget = 9000 * kMiB;
  EXPECT_EQ(card_budget(windows, true, {.reserve_first = 0}).bytes, 9000 * kMiB);
}

TEST(Budget, ACardWithADisplayKeepsMore) {
  Card card{.name = "c", .total = 24000 * kMiB};
  const Bytes plain = card_budget(card, true, {}).reserve;
  card.display = true;
  EXPECT_EQ(card_budget(card, true, {}).reserve, 1024 * kMiB);
  EXPECT_LT(plain, 1024 * kMiB);
  // A small one keeps a share.
  card.total = 64 * kMiB;
  EXPECT_EQ(card_budget(card, true, {}).reserve, 8 * kMiB);
}

}  // namespace
}  // namespace strata::memory
