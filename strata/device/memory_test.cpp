#include "strata/device/memory.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "strata/device/registry.h"

namespace strata::device {
namespace {

// Grants what fits a limit and writes down what it hears.
class Ledger final : public AllocationGate {
 public:
  bool admit(DeviceId where, PlanLineId line, Bytes bytes) override {
    heard.push_back("admit " + text(where, line, bytes));
    if (used + bytes > limit) return false;
    used += bytes;
    return true;
  }
  void released(DeviceId where, PlanLineId line, Bytes bytes) override {
    heard.push_back("released " + text(where, line, bytes));
    used -= bytes;
  }

  Bytes limit = 1000, used = 0;
  std::vector<std::string> heard;

 private:
  static std::string text(DeviceId where, PlanLineId line, Bytes bytes) {
    return std::to_string(where.value) + " " + std::to_string(line.value) + " " +
           std::to_string(bytes);
  }
};

TEST(Allocation, PassesTheGateBothWays) {
  Ledger ledger;
  const auto devices = make_devices("host,sim:2KiB", {.gate = &ledger});
  Device& card = *devices[1];
  {
    const Allocation own = value_or_throw(card.allocate(PlanLineId(7), 600, Mem::kDevice));
    const Allocation pinned = value_or_throw(card.allocate(PlanLineId(8), 300, Mem::kPinned));
    EXPECT_EQ(own.view().device, DeviceId(1));
    EXPECT_EQ(pinned.view().device, kHostId);
    EXPECT_EQ(own.line(), PlanLineId(7));
    const Try<Allocation> refused = card.allocate(PlanLineId(9), 101, Mem::kDevice);
    ASSERT_NE(fault(refused), nullptr);
    EXPECT_EQ(fault(refused)->code, ErrorCode::kResourceExhausted);
    EXPECT_STREQ(fault(refused)->call, "admit");
    EXPECT_EQ(fault(refused)->asked, 101U);
    EXPECT_EQ(card.allocated(), 900U);
  }
  EXPECT_EQ(card.allocated(), 0U);
  EXPECT_EQ(ledger.used, 0U);
  EXPECT_EQ(ledger.heard,
            (std::vector<std::string>{"admit 1 7 600", "admit 0 8 300", "admit 1 9 101",
                                      "released 0 8 300", "released 1 7 600"}));
}

TEST(Allocation, WhatTheDeviceRefusesIsGivenBackToTheGate) {
  Ledger ledger;
  ledger.limit = 1 << 20;
  const auto devices = make_devices("sim:4096", {.gate = &ledger});
  const Try<Allocation> refused = devices[1]->allocate(PlanLineId(1), 4097, Mem::kDevice);
  ASSERT_NE(fault(refused), nullptr);
  EXPECT_EQ(ledger.used, 0U);
  EXPECT_STREQ(to_error(*fault(refused)).what(),
               "allocate failed on device 1 (resource_exhausted): 4097 bytes asked, 4096 free");
}

class EachDevice : public testing::TestWithParam<const char*> {
 protected:
  EachDevice() : devices_(make_devices(GetParam(), {})) {}
  Device& device() { return *devices_.back(); }

 private:
  std::vector<std::unique_ptr<Device>> devices_;
};
INSTANTIATE_TEST_SUITE_P(Devices, EachDevice, testing::Values("host", "sim:1MiB"));

TEST_P(EachDevice, MovesOwnershipAndAligns) {
  Allocation first = value_or_throw(device().allocate(PlanLineId(1), 100, Mem::kDevice));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data()) % 256, 0U);
  std::byte* const data = first.data();
  Allocation second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): that is what is asked
  EXPECT_EQ(second.data(), data);
  second = value_or_throw(device().allocate(PlanLineId(1), 50, Mem::kDevice));
  EXPECT_EQ(device().allocated(), 50U);
  second = Allocation();
  EXPECT_EQ(device().allocated(), 0U);
}

TEST_P(EachDevice, RefusesTheImpossibleAsAValue) {
  for (const Bytes bytes : {Bytes{1} << 62, ~Bytes{0}}) {
    const auto result = device().allocate(PlanLineId(1), bytes, Mem::kDevice);
    ASSERT_NE(fault(result), nullptr);
    EXPECT_EQ(fault(result)->code, ErrorCode::kResourceExhausted);
    EXPECT_EQ(fault(result)->asked, bytes);
  }
  EXPECT_EQ(device().allocated(), 0U);
}

TEST_P(EachDevice, GivesMemoryOfNoBytes) {
  const Allocation none = value_or_throw(device().allocate(PlanLineId(1), 0, Mem::kDevice));
  EXPECT_TRUE(none);
  EXPECT_EQ(none.bytes(), 0U);
}

TEST_P(EachDevice, KnowsItsCapacity) {
  const Capacity capacity = device().capacity();
  EXPECT_GT(capacity.total, 0U);
  EXPECT_GT(capacity.free, 0U);
  EXPECT_LE(capacity.free, capacity.total);
}

TEST(MemoryDeathTest, PartsAndArraysStayInside) {
  const auto devices = make_devices("host", {});
  const Allocation memory = value_or_throw(devices[0]->allocate(PlanLineId(1), 100, Mem::kDevice));
  EXPECT_EQ(memory.view().part(40, 60).data, memory.data() + 40);
  EXPECT_EQ(memory.as<float>({5, 5}).size(), 25);
  EXPECT_DEATH(memory.view().part(41, 60), "check failed");
  EXPECT_DEATH(memory.view().part(~Bytes{0}, 2), "check failed");
  EXPECT_DEATH(memory.as<float>({26}), "check failed");
}

TEST(MemoryDeathTest, ADeviceDoesNotGoBeforeItsMemory) {
  EXPECT_DEATH(
      {
        auto devices = make_devices("host", {});
        const Allocation memory =
            value_or_throw(devices[0]->allocate(PlanLineId(1), 100, Mem::kDevice));
        devices.clear();
      },
      "check failed");
}

}  // namespace
}  // namespace strata::device
