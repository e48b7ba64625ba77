#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "strata/base/format.h"
#include "strata/model/test_model.h"

// The draft layer, row by row: step N computes all cells at once from the residual of step N - 1
// and the true tokens, with cells of its own (tests/golden/qwen4exp/README.md).
namespace strata::model {
namespace {

using model::testing::array;
using model::testing::Loaded;
using model::testing::LoadOptions;

// Logits of drafts 1 .. n_steps.
std::vector<std::vector<float>> run_drafts(Loaded& m, const std::vector<int32_t>& ids, int piece,
                                           int n_steps) {
  std::vector<float> residual;
  {
    const auto session = m.session();
    m.run(*session, ids, piece, &residual);
  }
  std::vector<std::vector<float>> logits;
  for (int step = 1; step <= n_steps; ++step) {
    const auto session = m.draft_session();
    logits.push_back(
        m.run_draft(*session, std::span(ids).subspan(static_cast<size_t>(step)), piece, residual));
  }
  return logits;
}

class Drafts : public ::testing::TestWithParam<std::tuple<const char*, bool>> {};

TEST_P(Drafts, EqualTheReferenceInAnyCut) {
  const auto& [name, per_stream] = GetParam();
  const gguf::Model reference = gguf::Model::open(model::testing::reference_path(name));
  const std::vector<int32_t> ids = model::testing::ids_of(reference);
  std::vector<std::vector<float>> first;
  for (int piece : {128, 7, 1}) {
    Loaded m(name, {.chunk = 128, .draft = true, .per_stream = per_stream});
    const std::vector<std::vector<float>> logits = run_drafts(m, ids, piece, 3);
    for (size_t step = 0; step < logits.size(); ++step) {
      const std::vector<float> expected =
          array(reference, format("draft{}_{}", step + 1, per_stream ? "stream" : "full"));
      EXPECT_LE(model::testing::max_difference(logits[step], expected), 1e-4f)
          << "draft " << step + 1 << ", steps of " << piece;
    }
    if (first.empty()) first = logits;
    EXPECT_EQ(logits, first) << "steps of " << piece;
  }
}

INSTANTIATE_TEST_SUITE_P(Qwen4Exp, Drafts,
                         ::testing::Combine(::testing::Values("tiny", "tiny-yarn", "tiny-nople"),
                                            ::testing::Bool()),
                         [](const auto& instance) {
                           std::string text =
                               format("{}_{}", std::get<0>(instance.param),
                                      std::get<1>(instance.param) ? "stream" : "full");
                           std::replace(text.begin(), text.end(), '-', '_');
                           return text;
                         });

TEST(Drafts, TheFileTellsTheNorm) {
  const gguf::Model reference = gguf::Model::open(model::testing::reference_path("tiny"));
  const std::vector<int32_t> ids = model::testing::ids_of(reference);
  Loaded m("tiny", {.chunk = 128, .draft = true});
  EXPECT_TRUE(m.model().info().has_draft);
  const std::vector<std::vector<float>> logits = run_drafts(m, ids, 128, 1);
  EXPECT_LE(model::testing::max_difference(logits[0], array(reference, "draft1_stream")), 1e-4f);
  EXPECT_GT(model::testing::max_difference(logits[0], array(reference, "draft1_full")), 0.05f);
}

TEST(Drafts, BitsDoNotDependOnTheMachine) {
  for (const char* name : {"tiny", "strata-demo"}) {
    const std::vector<int32_t> ids = model::testing::text_of(name);
    Loaded plain(name, {.chunk = 128, .draft = true});
    const std::vector<std::vector<float>> expected = run_drafts(plain, ids, 128, 2);
    for (CpuLevel level : kernels::testing::levels_here()) {
      Loaded m(name, {.chunk = 64, .draft = true, .threads = 3, .level = level});
      EXPECT_EQ(run_drafts(m, ids, 13, 2), expected) << name << " " << strata::name(level);
    }
  }
}

TEST(Drafts, TheDemoIsCloseToItsReference) {
  const gguf::Model reference = gguf::Model::open(model::testing::reference_path("strata-demo"));
  Loaded m("strata-demo",
           {.chunk = 64, .cache = kernels::CacheType::kF16, .draft = true, .threads = 2});
  model::testing::Closeness closeness[2];
  for (int k = 0; k < 4; ++k) {
    const std::vector<int32_t> ids = model::testing::ids_of(reference, format("ids_{}", k));
    const std::vector<std::vector<float>> logits = run_drafts(m, ids, 64, 2);
    for (size_t step = 0; step < 2; ++step) {
      closeness[step].add(logits[step], array(reference, format("mtp{}_{}", step + 1, k)),
                          m.n_vocab());
    }
  }
  EXPECT_EQ(closeness[0].rows, 117);
  EXPECT_EQ(closeness[1].rows, 113);
  // Exact arithmetic on this file gives 0.0405 and 0.0562, 108 and 97 equal.
  EXPECT_LE(closeness[0].mean_kl(), 0.05);
  EXPECT_LE(closeness[1].mean_kl(), 0.07);
  EXPECT_GE(closeness[0].equal_argmax, 105);
  EXPECT_GE(closeness[1].equal_argmax, 93);
  for (const auto& c : closeness) {
    RecordProperty(format("mean_kl_of_{}", c.rows), std::to_string(c.mean_kl()));
  }
}

// Without being asked for, the draft layer is not loaded, and drafting leaves the trunk alone.
TEST(Drafts, LeaveTheTrunkAlone) {
  const std::vector<int32_t> ids = model::testing::text_of("tiny");
  Loaded without("tiny", {.chunk = 128});
  EXPECT_FALSE(without.model().info().has_draft);
  EXPECT_EQ(without.model().draft_states(), nullptr);
  const auto alone = without.session();
  const std::vector<float> expected = without.run(*alone, ids, 128);

  Loaded m("tiny", {.chunk = 128, .draft = true});
  const auto session = m.session();
  std::vector<float> residual;
  std::vector<float> logits = m.run(*session, std::span(ids).first(60), 60, &residual);
  const auto draft = m.draft_session();
  m.run_draft(*draft, std::span(ids).subspan(1, 59), 20, residual);
  const std::vector<float> rest = m.run(*session, std::span(ids).subspan(60), 7);
  logits.insert(logits.end(), rest.begin(), rest.end());
  EXPECT_EQ(logits, expected);
  EXPECT_EQ(m.hash(*session), without.hash(*alone));
}

}  // namespace
}  // namespace strata::model
