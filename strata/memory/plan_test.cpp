#include "strata/memory/plan.h"

#include <gtest/gtest.h>

#include "strata/base/error.h"
#include "strata/memory/expert_store.h"
#include "strata/memory/ledger.h"

namespace strata::memory {
namespace {

Line line(const char* name, Bytes bytes, uint8_t phases = kAlways, bool mapped = false) {
  return {.owner = "test",
          .name = name,
          .where = DeviceId(0),
          .bytes = bytes,
          .phases = phases,
          .mapped = mapped};
}

TEST(Plan, PeakIsTheLargestPhaseNotTheSum) {
  Plan plan;
  plan.add(line("weights", 100, kAlways));
  plan.add(line("file", 1000, kAlways, true));
  plan.add(line("staging", 70, kLoad));
  plan.add(line("chunk", 50, kPrompt));
  plan.add(line("graphs", 30, kPrompt | kDecode));
  EXPECT_EQ(plan.peak(DeviceId(0)), 180u);
  EXPECT_EQ(plan.mapped(DeviceId(0)), 1000u);
  EXPECT_EQ(plan.peak(DeviceId(1)), 0u);
}

TEST(Plan, WhatDoesNotFitIsRefusedWithNeedHaveAndTheLines) {
  Plan plan;
  plan.add(line("weights", 100));
  plan.require(DeviceId(0), 100, "");
  try {
    plan.require(DeviceId(0), 99, "use a shorter --max-context");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
    for (const char* part : {"100 B", "99 B", "weights", "--max-context"}) {
      EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
    }
  }
}

TEST(Ledger, HoldsAllocationsToTheirLines) {
  Plan plan;
  const PlanLineId a = plan.add(line("a", 100));
  Ledger ledger(plan);
  EXPECT_TRUE(ledger.admit(DeviceId(0), a, 60));
  EXPECT_FALSE(ledger.admit(DeviceId(0), a, 41));
  EXPECT_FALSE(ledger.admit(DeviceId(1), a, 1)) << "another device";
  EXPECT_FALSE(ledger.admit(DeviceId(0), PlanLineId(), 1)) << "no line";
  EXPECT_TRUE(ledger.admit(DeviceId(0), a, 40));
  ledger.released(DeviceId(0), a, 40);
  EXPECT_EQ(ledger.used(a), 60u);
  ledger.seal();
  EXPECT_FALSE(ledger.admit(DeviceId(0), a, 1));
  EXPECT_NE(ledger.table().find("after the start"), std::string::npos);
}

TEST(ExpertStore, GivesTheAddressesOfALayer) {
  const std::byte bytes[6] = {};
  ExpertStore store(2);
  store.add_layer(LayerId(1), {{bytes, bytes + 1, bytes + 2}, {bytes + 3, bytes + 4, bytes + 5}});
  const ExpertLease lease = store.acquire(LayerId(1));
  EXPECT_EQ(lease.parts.row(1)[2], bytes + 5);
}

}  // namespace
}  // namespace strata::memory
