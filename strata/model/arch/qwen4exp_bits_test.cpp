#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "strata/base/format.h"
#include "strata/model/test_model.h"

// One result for each token: no bit of logits or state depends on how the tokens are cut into
// steps, on threads, instruction set, slot, company, device or the order a device works in.
namespace strata::model {
namespace {

using model::testing::Loaded;
using model::testing::LoadOptions;

// Everything a run leaves behind.
struct Result {
  std::vector<float> logits;
  uint64_t hash = 0;
};

void expect_equal(const Result& got, const Result& expected, const std::string& what) {
  ASSERT_EQ(got.logits.size(), expected.logits.size()) << what;
  const size_t bytes = got.logits.size() * sizeof(float);
  EXPECT_EQ(std::memcmp(got.logits.data(), expected.logits.data(), bytes), 0)
      << what << ": logits differ by up to "
      << model::testing::max_difference(got.logits, expected.logits);
  EXPECT_EQ(got.hash, expected.hash) << what << ": state";
}

Result run_alone(const std::string& name, const LoadOptions& options, std::span<const int32_t> ids,
                 int piece) {
  Loaded m(name, options);
  const auto session = m.session();
  Result r;
  r.logits = m.run(*session, ids, piece);
  r.hash = m.hash(*session);
  return r;
}

class Bits : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ids_ = model::testing::text_of(GetParam());
    // Made once a model.
    static std::map<std::string, Result> known;
    Result& result = known[GetParam()];
    if (result.logits.empty()) result = run_alone(GetParam(), {.chunk = 128}, ids_, 128);
    expected_ = result;
    ASSERT_GT(expected_.logits.size(), 0U);
  }
  int n_layers() const {
    return read_facts(gguf::Model::open(model::testing::model_path(GetParam()))).n_layers;
  }
  std::vector<int32_t> ids_;
  Result expected_;
};

TEST_P(Bits, AnyCutIntoSteps) {
  Loaded m(GetParam(), {.chunk = 128});
  for (int piece : {1, 2, 7, 64, 100}) {
    const auto session = m.session();
    Result r;
    r.logits = m.run(*session, ids_, piece);
    r.hash = m.hash(*session);
    expect_equal(r, expected_, format("steps of {}", piece));
  }
  // The size that buffers are made for does not matter either.
  for (int chunk : {1, 7}) {
    expect_equal(run_alone(GetParam(), {.chunk = chunk}, ids_, chunk), expected_,
                 format("a chunk of {}", chunk));
  }
}

TEST_P(Bits, ThreadsAndInstructionSets) {
  for (CpuLevel level : kernels::testing::levels_here()) {
    for (int threads : {1, 2, 3}) {
      for (int piece : {1, 50}) {
        expect_equal(
            run_alone(GetParam(), {.chunk = 64, .threads = threads, .level = level}, ids_, piece),
            expected_, format("{}, {} threads, steps of {}", name(level), threads, piece));
      }
    }
  }
}

TEST_P(Bits, ThePlainBackend) {
  // Slow, and the demo is large: the first tokens are enough there.
  const size_t n = std::string(GetParam()) == "strata-demo" ? 10 : ids_.size();
  const auto some = std::span(ids_).first(n);
  const Result plain =
      run_alone(GetParam(), {.chunk = 64, .backend = device::Backend::kRef}, some, 64);
  expect_equal(plain, run_alone(GetParam(), {.chunk = 64}, some, 64), "ref");
}

TEST_P(Bits, SmallerCells) {
  for (const kernels::CacheType type : {kernels::CacheType::kF16, kernels::CacheType::kI8}) {
    const LoadOptions options{.chunk = 64, .cache = type};
    const Result whole = run_alone(GetParam(), options, ids_, 64);
    for (int piece : {1, 7}) {
      expect_equal(run_alone(GetParam(), options, ids_, piece), whole, kernels::name_of(type));
    }
    LoadOptions on_card = options;
    on_card.devices = "host,sim";
    expect_equal(run_alone(GetParam(), on_card, ids_, 64), whole, "on a card");
    EXPECT_NE(whole.hash, expected_.hash);
  }
}

TEST_P(Bits, WeightsReadInsteadOfMapped) {
  expect_equal(run_alone(GetParam(), {.chunk = 64, .mapped = false}, ids_, 64), expected_, "read");
}

TEST_P(Bits, WeightsInTiles) {
  for (const bool mapped : {true, false}) {
    for (const int piece : {1, 64}) {
      expect_equal(
          run_alone(
              GetParam(),
              {.chunk = 64, .threads = 2, .mapped = mapped, .packing = kernels::Packing::kTiles},
              ids_, piece),
          expected_, "tiles");
    }
  }
  expect_equal(run_alone(GetParam(),
                         {.chunk = 64, .devices = "host,sim", .packing = kernels::Packing::kTiles},
                         ids_, 64),
               expected_, "tiles on a card");
  const size_t n = std::string(GetParam()) == "strata-demo" ? 10 : ids_.size();
  const auto some = std::span(ids_).first(n);
  const LoadOptions plain{
      .chunk = 64, .backend = device::Backend::kRef, .packing = kernels::Packing::kTiles};
  expect_equal(run_alone(GetParam(), plain, some, 64),
               run_alone(GetParam(), {.chunk = 64}, some, 64), "tiles, ref");
}

// Threads that begin with stretches of their own, in loading and in products.
TEST_P(Bits, ThreadsByPlace) {
  for (const int threads : {2, 3}) {
    expect_equal(run_alone(GetParam(),
                           {.chunk = 64,
                            .threads = threads,
                            .by_place = true,
                            .packing = kernels::Packing::kTiles},
                           ids_, 7),
                 expected_, format("{} threads by place", threads));
  }
}

// A card made of host memory: its memory starts as NaN, and queued work runs at a wait only, in any
// order that streams and events allow.
TEST_P(Bits, SimInAnyLegalOrder) {
  const bool large = std::string(GetParam()) == "strata-demo";
  for (uint64_t seed = 1; seed <= (large ? 2U : 8U); ++seed) {
    const int piece = seed % 2 == 0 ? 1 : 64;
    expect_equal(
        run_alone(GetParam(), {.chunk = 64, .devices = "host,sim", .threads = 2, .seed = seed},
                  ids_, piece),
        expected_, format("sim, seed {}", seed));
  }
}

// Layers on two and three cards, the residual handed from one to the next.
TEST_P(Bits, SplitOverCards) {
  const bool large = std::string(GetParam()) == "strata-demo";
  for (const char* cards : {"sim,sim", "sim,sim,sim"}) {
    for (uint64_t seed = 1; seed <= (large ? 1U : 4U); ++seed) {
      const int piece = seed % 2 == 0 ? 1 : 64;
      expect_equal(
          run_alone(GetParam(), {.chunk = 64, .devices = cards, .threads = 2, .seed = seed}, ids_,
                    piece),
          expected_, format("{}, seed {}", cards, seed));
    }
  }
}

// No expert, one, some or all of a layer in slots of its card, the others computed by the host;
// with experts that stay and with some that move between all steps.
TEST_P(Bits, ExpertsInSlots) {
  const bool large = std::string(GetParam()) == "strata-demo";
  struct Case {
    const char* cards;
    int slots, piece;
    bool swaps;
  };
  const std::vector<Case> cases = {{"sim", 0, 1, false},         {"sim", 1, 33, false},
                                   {"sim", 1, 1, true},          {"sim", 5, 33, true},
                                   {"sim", 1 << 20, 33, false},  {"sim,sim", 5, 7, true},
                                   {"sim,sim,sim", 0, 33, true}, {"sim,sim,sim", 5, 1, true}};
  for (const Case& c : cases) {
    if (large && c.piece == 1) continue;
    LoadOptions options{.chunk = 64,
                        .devices = c.cards,
                        .seed = static_cast<uint64_t>(c.slots + c.piece),
                        .packing = kernels::Packing::kTiles,
                        .expert_slots = c.slots};
    options.max_swaps = c.swaps ? 3 : 0;
    options.swap_margin = c.swaps ? -1 : 1.2;
    Loaded m(GetParam(), options);
    const auto session = m.session();
    Result r;
    r.logits = m.run(*session, ids_, c.piece);
    r.hash = m.hash(*session);
    expect_equal(r, expected_,
                 format("{}, {} slots, steps of {}, swaps {}", c.cards, c.slots, c.piece, c.swaps));
    const memory::SlotCounters counters = m.model().slot_counters();
    const bool all = c.slots > 1000, none = c.slots == 0;
    EXPECT_EQ(counters.misses > 0, !all) << c.slots;
    EXPECT_EQ(counters.hits > 0, !all && !none) << c.slots;
    EXPECT_EQ(counters.swapped > 0, c.swaps && !none) << c.slots;
  }
}

// Experts in less RAM than they need, the others read from the file; with and without cards.
TEST_P(Bits, ExpertsInStorage) {
  const bool large = std::string(GetParam()) == "strata-demo";
  Bytes all = 0;
  const ModelFacts facts = read_facts(gguf::Model::open(model::testing::model_path(GetParam())));
  for (int l = 0; l < facts.n_layers; ++l) {
    all += static_cast<Bytes>(facts.n_experts) * facts.layers[static_cast<size_t>(l)].expert_bytes;
  }
  struct Case {
    const char* devices;
    int percent, piece;
    bool mapped;
    kernels::Packing packing;
  };
  using kernels::Packing;
  const std::vector<Case> cases = {{"host", 30, 1, true, Packing::kTiles},
                                   {"host", 30, 33, false, Packing::kGguf},
                                   {"host", 200, 7, true, Packing::kTiles},
                                   {"sim", 40, 7, true, Packing::kTiles},
                                   {"sim,sim", 40, 33, false, Packing::kTiles}};
  for (const Case& c : cases) {
    if (large && c.piece == 1) continue;
    // The buffers of reads are small beside a real expert, not beside a tiny one.
    const Bytes ram = all * static_cast<Bytes>(c.percent) / 100 + 3 * 32768;
    LoadOptions options{.chunk = 64,
                        .devices = c.devices,
                        .mapped = c.mapped,
                        .packing = c.packing,
                        .expert_slots = 2,
                        .expert_ram = ram,
                        .swap_margin = -1};
    Loaded m(GetParam(), options);
    const auto session = m.session();
    Result r;
    r.logits = m.run(*session, ids_, c.piece);
    r.hash = m.hash(*session);
    expect_equal(r, expected_, format("{}, {} %, steps of {}", c.devices, c.percent, c.piece));
    const memory::PoolCounters counters = m.model().pool_counters();
    EXPECT_GT(counters.uses, 0U);
    EXPECT_GT(counters.preloaded, 0U);
    if (c.percent == 200) {
      EXPECT_EQ(counters.misses, 0U);
    }
    if (c.percent < 100) {
      EXPECT_GT(counters.misses, 0U);
    }
    // What was read is what was missing or guessed, and the reader has counted the same.
    EXPECT_EQ(counters.io_bytes, counters.bytes);
    const uint64_t begun = counters.misses + counters.look_ahead + counters.preloaded;
    const ModelFacts::Layer& layer = facts.layers.front();
    if (std::ranges::all_of(std::span(facts.layers).first(static_cast<size_t>(facts.n_layers)),
                            [&](const auto& l) { return l.expert_bytes == layer.expert_bytes; })) {
      EXPECT_LE(counters.bytes, begun * layer.expert_bytes);
      EXPECT_GE(counters.bytes, (begun - counters.under_way) * layer.expert_bytes);
    }
  }
}

// What stays the same while other tiers come: the host computes without copies, and a card that has
// all experts of its layers asks nobody.
TEST_P(Bits, OnlyMissingExpertsCostAWayToTheHost) {
  const auto copies_of_a_step = [&](const LoadOptions& options) {
    Loaded m(GetParam(), options);
    const auto session = m.session();
    m.step(*session, std::span(ids_).first(3));
    const uint64_t before = m.stream().counters().copies.get();
    const uint64_t waits = m.stream().counters().records.get();
    m.model().begin_step();
    m.model().add(*session, std::span(ids_).subspan(3, 1));
    const int32_t row = 0;
    m.model().inputs().set_outputs({&row, 1});
    m.model().inputs().upload();
    m.model().forward();
    m.model().head();
    m.wait();
    session->commit(1);
    return std::pair(m.stream().counters().copies.get() - before,
                     m.stream().counters().records.get() - waits);
  };
  const auto host = copies_of_a_step({.chunk = 64});
  EXPECT_LE(host.first, 3U);   // the step's inputs
  EXPECT_EQ(host.second, 1U);  // the end of the step
  const auto whole = copies_of_a_step({.chunk = 64, .devices = "sim"});
  EXPECT_EQ(whole.second, 1U);  // the end of the step
  EXPECT_EQ(copies_of_a_step({.chunk = 64, .devices = "sim", .expert_slots = 1 << 20}), whole);
  const auto away = copies_of_a_step({.chunk = 64, .devices = "sim", .expert_slots = 1});
  const auto layers = static_cast<uint64_t>(n_layers());
  EXPECT_GE(away.first, whole.first + 2 * layers);
  EXPECT_GE(away.second, whole.second + layers);
}

// Two sessions share steps, whole or in pieces of different sizes, in either slot.
TEST_P(Bits, Company) {
  std::vector<int32_t> other(ids_.rbegin(), ids_.rend());
  const Result expected_other = run_alone(GetParam(), {.chunk = 128}, other, 128);
  Loaded m(GetParam(), {.chunk = 128, .slots = 3, .threads = 2});
  for (const auto& [a_piece, b_piece] : {std::pair{1, 1}, {7, 2}, {1, 33}, {60, 60}}) {
    for (bool swap : {false, true}) {
      const auto first = m.session(), second = m.session();
      SessionState& a = swap ? *second : *first;
      SessionState& b = swap ? *first : *second;
      Result ra, rb;
      size_t at = 0, bt = 0;
      while (at < ids_.size() || bt < other.size()) {
        std::vector<Loaded::Part> parts;
        const auto take = [](const std::vector<int32_t>& ids, size_t from, int n) {
          const size_t end = std::min(from + static_cast<size_t>(n), ids.size());
          return std::vector<int32_t>(ids.begin() + static_cast<std::ptrdiff_t>(from),
                                      ids.begin() + static_cast<std::ptrdiff_t>(end));
        };
        const std::vector<int32_t> for_a = take(ids_, at, a_piece),
                                   for_b = take(other, bt, b_piece);
        if (!for_a.empty()) parts.push_back({&a, for_a});
        if (!for_b.empty()) parts.push_back({&b, for_b});
        if (swap) std::reverse(parts.begin(), parts.end());
        const std::vector<float> logits = m.forward(parts);
        std::vector<int> kept;
        auto from = logits.begin();
        for (const Loaded::Part& part : parts) {
          const auto n = static_cast<std::ptrdiff_t>(part.ids.size()) * m.n_vocab();
          auto& to = part.session == &a ? ra.logits : rb.logits;
          to.insert(to.end(), from, from + n);
          from += n;
          kept.push_back(static_cast<int>(part.ids.size()));
        }
        m.commit(parts, kept);
        at += for_a.size();
        bt += for_b.size();
      }
      ra.hash = m.hash(a);
      rb.hash = m.hash(b);
      const std::string what = format("pieces of {} and {}", a_piece, b_piece);
      expect_equal(ra, expected_, what);
      expect_equal(rb, expected_other, what);
    }
  }
}

// A slot and its pages serve one session after the other: nothing is left of the last.
TEST_P(Bits, AUsedSlot) {
  Loaded m(GetParam(), {.chunk = 64, .slots = 1});
  for (int round = 0; round < 3; ++round) {
    {
      const auto before = m.session();
      m.run(*before, std::span(ids_).subspan(static_cast<size_t>(round) * 5), 11);
    }
    const auto session = m.session();
    Result r;
    r.logits = m.run(*session, ids_, 64);
    r.hash = m.hash(*session);
    expect_equal(r, expected_, format("round {}", round));
  }
}

INSTANTIATE_TEST_SUITE_P(Qwen4Exp, Bits,
                         ::testing::Values("tiny", "tiny-yarn", "tiny-nople", "strata-demo"),
                         [](const auto& instance) {
                           std::string text = instance.param;
                           std::replace(text.begin(), text.end(), '-', '_');
                           return text;
                         });

}  // namespace
}  // namespace strata::model
