#include "strata/memory/planner.h"

#include <gtest/gtest.h>

#include <random>

#include "strata/base/error.h"

namespace strata::memory {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20;

// Sizes of simple numbers, so that every sum can be checked by hand.
class FakeModel final : public PlanSource {
 public:
  int layers = 8, experts = 16, k = 2;
  bool draft_layer = true;
  Bytes blob = 1 * kMiB, dense = 10 * kMiB, head = 20 * kMiB;
  Bytes cell_bytes = 64;  // of a token in a layer

  int n_layers() const override { return layers; }
  bool has_draft() const override { return draft_layer; }
  int n_experts() const override { return experts; }
  int top_k() const override { return k; }
  Bytes blob_bytes(int layer) const override { return layer % 3 == 2 ? 2 * blob : blob; }
  Bytes dense_bytes(int) const override { return dense; }
  Bytes head_bytes() const override { return head; }
  void declare(const Placement& p, Plan& plan) const override {
    plan.add({.owner = "fake", .name = "tables", .where = DeviceId(0), .bytes = 5 * kMiB});
    for (const Stage& stage : p.stages) {
      const auto n = static_cast<Bytes>(stage.n_layers());
      plan.add({.owner = "fake", .name = "weights", .where = stage.where, .bytes = n * dense});
      plan.add({.owner = "fake",
                .name = "cells",
                .where = stage.where,
                .bytes = n * cell_bytes * static_cast<Bytes>(p.max_context)});
      plan.add({.owner = "fake",
                .name = "chunk",
                .where = stage.where,
                .bytes = static_cast<Bytes>(p.chunk) * 4096,
                .phases = kPrompt});
      plan.add({.owner = "fake",
                .name = "staging",
                .where = stage.where,
                .bytes = kMiB,
                .phases = kLoad});
    }
    plan.add({.owner = "fake", .name = "head", .where = p.head, .bytes = head});
    if (p.drafts()) {
      plan.add({.owner = "fake", .name = "draft", .where = p.draft, .bytes = dense});
    }
  }
};

Machine machine(std::vector<Bytes> cards_mib, Bytes ram_mib = 4096) {
  Machine m{.name = "test", .ram = ram_mib * kMiB, .ram_rate = 5e10, .storage_rate = 3e9};
  for (Bytes mib : cards_mib) {
    m.cards.push_back({.name = "card" + std::to_string(m.cards.size()),
                       .total = mib * kMiB,
                       .link_rate = 2e10,
                       .memory_rate = 5e11});
  }
  return m;
}

PlanWishes wishes() {
  return {.cards = {.reserve_first = 0, .reserve_later = 0}, .ram_reserve = 0, .max_context = 4096};
}

Bytes all_blobs(const FakeModel& model, int layers) {
  Bytes sum = 0;
  for (int l = 0; l < layers; ++l) sum += static_cast<Bytes>(model.experts) * model.blob_bytes(l);
  return sum;
}

TEST(Planner, WithoutCardsTheHostHasItAll) {
  const FakeModel model;
  const Solution s = solve(model, machine({}), wishes());
  ASSERT_TRUE(s.fits) << s.refusal;
  ASSERT_EQ(s.placement.stages.size(), 1u);
  EXPECT_EQ(s.placement.stages[0].where.value, 0);
  EXPECT_EQ(s.placement.head.value, 0);
  // Tables, 8 layers and a draft layer of weights, cells, chunk (more than staging), head, experts.
  const Bytes want = 5 * kMiB + 80 * kMiB + 10 * kMiB + 8 * 64 * 4096 + 512 * 4096 + 20 * kMiB +
                     all_blobs(model, 9);
  EXPECT_EQ(s.devices[0].peak, want);
  EXPECT_EQ(s.storage.n_blobs, 0);
  EXPECT_GT(s.expected.decode_tokens_per_s, 0);
}

TEST(Planner, SlotsAreWhatIsLeft) {
  const FakeModel model;
  // 150 of fixed lines and 64 more than that.
  const Solution s = solve(model, machine({200}), wishes());
  ASSERT_TRUE(s.fits) << s.refusal;
  EXPECT_GT(s.devices[1].expert_slots, 0);
  EXPECT_LE(s.devices[1].peak, 200 * kMiB);
  EXPECT_GT(s.devices[1].peak, 198 * kMiB) << "less than one expert is left over";
}

TEST(Planner, RamHoldsAllOrWhatNoCardHoldsOrTheHottest) {
  const FakeModel model;
  const Bytes blobs = all_blobs(model, 9);  // 192 MiB
  EXPECT_EQ(blobs, 192 * kMiB);
  const Solution all = solve(model, machine({200}, 5 + 192), wishes());
  ASSERT_TRUE(all.fits) << all.refusal;
  EXPECT_EQ(all.devices[0].peak, 5 * kMiB + blobs);
  const Solution resident = solve(model, machine({200}, 5 + 180), wishes());
  ASSERT_TRUE(resident.fits);
  EXPECT_LT(resident.devices[0].peak, 5 * kMiB + blobs);
  EXPECT_EQ(resident.storage.n_blobs, 0);
  const Solution some = solve(model, machine({200}, 5 + 50), wishes());
  ASSERT_TRUE(some.fits);
  EXPECT_LE(some.devices[0].peak, 55 * kMiB);
  EXPECT_GT(some.storage.n_blobs, 0);
  // Nothing is lost and nothing counted twice.
  Bytes in_ram = 0;
  for (const Line& line : some.plan.lines()) in_ram += line.name == "in RAM" ? line.bytes : 0;
  Bytes on_card = 0;
  for (const StageSlots& slots : some.homes.stages) on_card += slots.bytes;
  EXPECT_EQ(in_ram + on_card + some.storage.bytes, blobs);
  EXPECT_LT(some.expected.decode_tokens_per_s, resident.expected.decode_tokens_per_s);
}

TEST(Planner, WhatIsNotAskedForStepsDownAndSaysSo) {
  FakeModel model;
  model.cell_bytes = 2048;  // 16384 tokens in 8 layers: 256 MiB
  PlanWishes w = wishes();
  w.max_context.reset();
  const Solution s = solve(model, machine({200}), w);
  ASSERT_TRUE(s.fits) << s.refusal;
  EXPECT_LT(s.placement.max_context, 16384);
  bool told = false;
  for (const Decision& d : s.decisions) told |= d.name == "max-context" && d.warning;
  EXPECT_TRUE(told);
  // Asked for, it is kept, and the plan refused with need, have and what would help.
  w.max_context = 16384;
  const Solution refused = solve(model, machine({200}), w);
  EXPECT_FALSE(refused.fits);
  for (const char* part : {"card0", "may be used", "--max-context"}) {
    EXPECT_NE(refused.refusal.find(part), std::string::npos) << refused.refusal;
  }
}

TEST(Planner, ASplitThatWasTypedIsKeptOrRefused) {
  const FakeModel model;
  PlanWishes w = wishes();
  w.layer_split = {{3, 5}};
  const Solution s = solve(model, machine({150, 150}), w);
  ASSERT_TRUE(s.fits) << s.refusal;
  ASSERT_EQ(s.placement.stages.size(), 2u);
  EXPECT_EQ(s.placement.stages[0].end_layer, 3);
  EXPECT_EQ(s.placement.head.value, 2) << "with the last layer";
  w.layer_split = {{3, 4}};
  EXPECT_THROW(solve(model, machine({150, 150}), w), Error);
  w.layer_split = {{3, 3, 2}};
  EXPECT_THROW(solve(model, machine({150, 150}), w), Error);
}

TEST(Planner, SlackOfOneCardIsUsedBeforeAnotherStarves) {
  const FakeModel model;
  // In proportion the large one would have everything of its share in slots and room to spare.
  const Solution s = solve(model, machine({900, 100}), wishes());
  ASSERT_TRUE(s.fits) << s.refusal;
  int slots = 0;
  for (const DeviceUse& use : s.devices) slots += use.expert_slots;
  EXPECT_EQ(slots, 9 * 16) << "everything fits into the large card";
}

class PlannerProperty : public testing::TestWithParam<int> {};

TEST_P(PlannerProperty, BudgetsAreKeptAndReservesAreMonotonic) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()));
  const auto draw = [&](Bytes a, Bytes b) { return a + random() % (b - a + 1); };
  FakeModel model;
  model.layers = static_cast<int>(draw(1, 24));
  model.experts = static_cast<int>(draw(4, 64));
  model.blob = draw(kMiB / 4, 2 * kMiB);
  model.dense = draw(kMiB, 20 * kMiB);
  model.draft_layer = draw(0, 1) == 1;
  std::vector<Bytes> cards(draw(0, 3));
  for (Bytes& mib : cards) mib = draw(50, 1500);
  const Machine m = machine(cards, draw(64, 8192));
  PlanWishes w = wishes();
  if (draw(0, 1) == 1) w.expert_slots = static_cast<int>(draw(0, 64));
  const Bytes reserve = draw(0, 40) * kMiB, more = draw(1, 60) * kMiB;
  w.cards.reserve_first = reserve;
  const Solution before = solve(model, m, w);
  for (const DeviceUse& use : before.devices) {
    if (!before.fits) break;
    for (const Phase phase : {kLoad, kPrompt, kDecode, kDraftPrompt, kRestore}) {
      EXPECT_LE(before.plan.peak(use.where, phase), use.budget.bytes) << use.name;
    }
  }
  // Every layer once, in order.
  int next = 0;
  for (const Stage& stage : before.placement.stages) {
    EXPECT_EQ(stage.first_layer, next);
    next = stage.end_layer;
  }
  EXPECT_EQ(next, model.layers);
  EXPECT_EQ(solve(model, m, w).plan.table(), before.plan.table()) << "not the same twice";

  // With the same split, a reserve that is larger by d lowers the card's total by d to within one
  // expert; only a card whose layers all have their experts may lower it by less.
  if (m.cards.empty() || !before.fits) return;
  std::vector<int> split(m.cards.size(), 0);
  for (const Stage& stage : before.placement.stages) {
    split[static_cast<size_t>(stage.where.value - 1)] = stage.n_layers();
  }
  w.layer_split = split;
  w.chunk = before.placement.chunk;
  w.draft = before.placement.drafts();
  w.cards.reserve_first = reserve + more;
  const Solution after = solve(model, m, w);
  if (!after.fits || split[0] == 0) return;
  const Bytes a = before.devices[1].peak, b = after.devices[1].peak;
  EXPECT_LE(b, a);
  EXPECT_LE(b + more, before.devices[1].budget.bytes);
  if (!w.expert_slots && !before.homes.stages[0].everything(model)) {
    EXPECT_NEAR(static_cast<double>(a - b), static_cast<double>(more),
                static_cast<double>(2 * model.blob));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PlannerProperty, testing::Range(0, 200));

TEST(HitRate, FollowsThePublishedValuesOrTheProfile) {
  EXPECT_DOUBLE_EQ(hit_rate(nullptr, 0, 64, 512), 0.67);
  EXPECT_DOUBLE_EQ(hit_rate(nullptr, 0, 128, 512), 0.81);
  EXPECT_DOUBLE_EQ(hit_rate(nullptr, 0, 512, 512), 1);
  EXPECT_DOUBLE_EQ(hit_rate(nullptr, 0, 32, 512), 0.335);
  EXPECT_DOUBLE_EQ(hit_rate(nullptr, 0, 0, 512), 0);
  const ExpertProfile profile = ExpertProfile::from_counts(2, 4, {1, 6, 2, 1, 0, 0, 0, 0});
  EXPECT_DOUBLE_EQ(hit_rate(&profile, 0, 1, 4), 0.6);
  EXPECT_DOUBLE_EQ(hit_rate(&profile, 0, 2, 4), 0.8);
}

}  // namespace
}  // namespace strata::memory
