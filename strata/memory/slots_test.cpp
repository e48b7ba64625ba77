#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "strata/device/registry.h"
#include "strata/memory/card_slots.h"

namespace strata::memory {
namespace {

ExpertPlace place(int layer, int expert) {
  return {static_cast<uint16_t>(layer), static_cast<uint16_t>(expert)};
}

TEST(ExpertHeat, WhatIsUsedNowWeighsMoreThanWhatWas) {
  ExpertHeat heat(1, 4, nullptr);
  EXPECT_FALSE(heat.learned());
  heat.used(LayerId(0), std::vector<int32_t>(100, 0));
  heat.age(ExpertHeat::kHalfLife);
  heat.used(LayerId(0), std::vector<int32_t>(60, 1));
  EXPECT_GT(heat.of(0, 1), heat.of(0, 0));
  EXPECT_EQ(heat.ranked()[0], place(0, 1));
  EXPECT_EQ(heat.profile().counts, (std::vector<int32_t>{50, 60, 0, 0}));
}

// Counts are scaled down before they lose digits beside each other; the ranking stays.
TEST(ExpertHeat, LivesForEver) {
  ExpertHeat heat(2, 3, nullptr);
  for (int i = 0; i < 1000; ++i) {
    heat.used(LayerId(1), std::vector<int32_t>{2, 2, 1});
    heat.age(ExpertHeat::kHalfLife);
  }
  EXPECT_GT(heat.epoch(), 0U);
  EXPECT_EQ(heat.ranked()[0], place(1, 2));
  EXPECT_EQ(heat.ranked()[1], place(1, 1));
  EXPECT_EQ(heat.profile().counts[5], 2);
}

TEST(ExpertHeat, BeginsWithAProfile) {
  const ExpertProfile profile = ExpertProfile::from_counts(2, 2, {1, 7, 3, 0});
  const ExpertHeat heat(2, 2, &profile);
  EXPECT_EQ(heat.ranked(), profile.ranked);
  ExpertProfile ranks = profile;
  std::ranges::fill(ranks.counts, 0);
  EXPECT_EQ(ExpertHeat(2, 2, &ranks).ranked(), profile.ranked);
  // Of another model: nothing is known.
  EXPECT_EQ(ExpertHeat(2, 3, &profile).ranked(), ExpertProfile::unknown(2, 3).ranked);
}

TEST(SlotTable, GivesUpTheColdestThatIsLargeEnoughAndFree) {
  ExpertHeat heat(1, 8, nullptr);
  SlotTable table(std::vector<SlotClass>{{100, 2}, {300, 2}}, 1, 8);
  EXPECT_EQ(table.bytes(), 4U * 256 + 2 * 256);
  // Empty ones first, the smallest that fits.
  const int a = table.victim(80, heat, 1), large = table.victim(101, heat, 1);
  EXPECT_EQ(table.at(a).bytes, 100U);
  EXPECT_EQ(table.at(large).bytes, 300U);
  for (int i = 0; i < 4; ++i) {
    table.put(i, place(0, i));
    heat.used(LayerId(0), std::vector<int32_t>(static_cast<size_t>(10 - i), i));
  }
  EXPECT_EQ(table.victim(1, heat, 1), 3);  // the coldest
  table.at(3).pins = 1;
  EXPECT_EQ(table.victim(200, heat, 1), 2);
  table.at(2).stamp = 1;
  EXPECT_EQ(table.victim(200, heat, 1), -1);
  EXPECT_EQ(table.victim(200, heat, 2), 2);
  // Listed as cold and used since: another one goes.
  EXPECT_EQ(table.victim(50, heat, 1), 1);
  heat.used(LayerId(0), std::vector<int32_t>(100, 0));
  table.at(3).pins = 0;
  EXPECT_EQ(table.victim(50, heat, 9), 3);
  table.clear(3);
  EXPECT_EQ(table.find(0, 3), -1);
  EXPECT_EQ(table.victim(50, heat, 9), 3);
}

// Random experts wanted on a simulated card: wherever the table of addresses points, the bytes of
// that expert lie, after every step and in any order of work.
TEST(CardSlots, EveryAddressHasItsExpert) {
  constexpr int kLayers = 3, kExperts = 6;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const auto devices = device::make_devices("sim:1MiB", {.seed = seed});
    device::Device& card = *devices.back();
    const auto stream = card.make_stream("test");
    const std::vector<BlobShape> shapes = {{{64, 64, 128}}, {{10, 20, 30}}, {{64, 64, 128}}};
    std::vector<std::vector<std::byte>> memory;
    ExpertStore store(kLayers);
    const auto byte_of = [](int l, int e, int part) {
      return static_cast<std::byte>(1 + part + 3 * (e + kExperts * l));
    };
    for (int l = 0; l < kLayers; ++l) {
      std::vector<ExpertStore::Parts> parts(kExperts);
      for (int e = 0; e < kExperts; ++e) {
        for (size_t i = 0; i < 3; ++i) {
          memory.emplace_back(shapes[static_cast<size_t>(l)].part[i],
                              byte_of(l, e, static_cast<int>(i)));
          parts[static_cast<size_t>(e)][i] = memory.back().data();
        }
      }
      store.add_layer(LayerId(l), parts);
    }
    Plan plan;
    ExpertHeat heat(kLayers, kExperts, nullptr);
    const StageSlots slots{.where = card.id(),
                           .layers = {0, 2, 1},
                           .slots = {2, 1, 2},
                           .classes = {{shapes[0].bytes(), 3}, {shapes[1].bytes(), 2}}};
    CardSlots on_card(card, slots, {0, 1, 2}, shapes, kExperts, {.max_swaps = 2, .margin = 1},
                      plan);
    on_card.allocate();
    on_card.fill(store, heat, *stream);
    EXPECT_EQ(on_card.counters().filled, 5U);
    EXPECT_TRUE(on_card.holds(LayerId(1), ExpertId(1)));

    std::mt19937_64 random(seed);
    std::set<std::pair<int, int>> seen;
    for (int step = 0; step < 60; ++step) {
      const int l = static_cast<int>(random() % kLayers), e = static_cast<int>(random() % kExperts);
      heat.used(LayerId(l), std::vector<int32_t>(10 + random() % 10, e));
      heat.age(900);
      const ExpertId id(e);
      const bool here = on_card.holds(LayerId(l), id);
      on_card.count(LayerId(l), here ? 1 : 0, {&id, here ? 0U : 1U}, here ? 0 : 1);
      EXPECT_LE(on_card.swap(store, heat, *stream), 2);
      struct Look {
        const CardSlots* slots;
        const std::vector<BlobShape>* shapes;
        int* n;
        std::set<std::pair<int, int>>* seen;
        void operator()() const {
          for (int layer = 0; layer < kLayers; ++layer) {
            for (int expert = 0; expert < kExperts; ++expert) {
              const std::byte* const* parts = slots->parts(LayerId(layer)).row(expert);
              EXPECT_EQ(parts[0] != nullptr, slots->holds(LayerId(layer), ExpertId(expert)));
              if (parts[0] == nullptr) continue;
              ++*n;
              seen->insert({layer, expert});
              for (int i = 0; i < 3; ++i) {
                const Bytes bytes = (*shapes)[static_cast<size_t>(layer)].part[i];
                for (Bytes b = 0; b < bytes; ++b) {
                  ASSERT_EQ(parts[i][b],
                            static_cast<std::byte>(1 + i + 3 * (expert + kExperts * layer)));
                }
              }
            }
          }
        }
      };
      int n = 0;
      stream->run({.op = "look"}, Look{&on_card, &shapes, &n, &seen});
      ASSERT_TRUE(stream->drain({"test", "look"}, std::chrono::minutes(1)));
      EXPECT_EQ(n, 5);
    }
    EXPECT_GT(on_card.counters().swapped, 5U);
    EXPECT_GT(seen.size(), 10U);
    EXPECT_EQ(on_card.counters().hits + on_card.counters().misses, 60U);
  }
}

}  // namespace
}  // namespace strata::memory
