#include "strata/cli/machine_file.h"

#include <gtest/gtest.h>

#include "strata/base/error.h"

namespace strata::cli {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20;

std::string refusal(const char* json) {
  try {
    parse_machine(json);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
    return e.what();
  }
  ADD_FAILURE() << "taken: " << json;
  return "";
}

TEST(MachineFile, SaysWhatAMachineHas) {
  const memory::Machine m = parse_machine(
      R"({"name": "n", "ram_mib": 1000, "ram_gbps": 60, "storage_gbps": 3.5, "peer_access": true,
          "pinning": {"mapped": true, "pageable_registration": false},
          "cards": [{"name": "c", "vram_mib": 12227, "used_by_others_mib": 600, "display": true,
                     "os_budget_mib": 11000, "link_gbps": -1.0, "vram_gbps": 672},
                    {"vram_mib": 100.5}]})");
  EXPECT_EQ(m.name, "n");
  EXPECT_EQ(m.ram, 1000 * kMiB);
  EXPECT_EQ(m.ram_rate, 60e9);
  EXPECT_EQ(m.storage_rate, 3.5e9);
  EXPECT_TRUE(m.peer_access);
  EXPECT_TRUE(m.pins_mapped);
  EXPECT_FALSE(m.pins_pageable);
  ASSERT_EQ(m.cards.size(), 2u);
  EXPECT_EQ(m.cards[0].total, 12227 * kMiB);
  EXPECT_EQ(m.cards[0].used_by_others, 600 * kMiB);
  EXPECT_EQ(m.cards[0].os_budget, 11000 * kMiB);
  EXPECT_TRUE(m.cards[0].display);
  EXPECT_EQ(m.cards[0].link_rate, -1e9) << "judged by whoever uses it";
  EXPECT_EQ(m.cards[0].memory_rate, 672e9);
  EXPECT_EQ(m.cards[1].name, "card1");
  EXPECT_EQ(m.cards[1].total, 201 * kMiB / 2);
}

TEST(MachineFile, WhatItCannotMeanIsRefusedByName) {
  EXPECT_NE(refusal("{").find("JSON"), std::string::npos);
  EXPECT_NE(refusal("[]").find("object"), std::string::npos);
  EXPECT_NE(refusal("{}").find("\"ram_mib\" is missing"), std::string::npos);
  EXPECT_NE(refusal(R"({"ram_mib": -5})").find("\"ram_mib\" is -5"), std::string::npos);
  EXPECT_NE(refusal(R"({"ram_mib": "many"})").find("no number"), std::string::npos);
  EXPECT_NE(refusal(R"({"ram_mib": 5, "vram": 3})").find("\"vram\" is not known"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"ram_mib": 5, "cards": {}})").find("no list"), std::string::npos);
  EXPECT_NE(refusal(R"({"ram_mib": 5, "cards": [{}]})").find("cards[0]: \"vram_mib\" is missing"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"ram_mib": 5, "cards": [{"vram_mib": 1, "display": 1}]})")
                .find("neither true nor false"),
            std::string::npos);
}

}  // namespace
}  // namespace strata::cli
