#include "strata/model/seeded_context.h"

#include <gtest/gtest.h>

#include <cmath>

#include "strata/model/test_model.h"

namespace strata::model {
namespace {

using testing::Loaded;
using testing::LoadOptions;

std::vector<int32_t> tokens(int n) {
  std::vector<int32_t> ids;
  for (int i = 0; i < n; ++i) ids.push_back((i * 7919) % 400 + 1);
  return ids;
}

class SeededContext : public ::testing::TestWithParam<kernels::CacheType> {};

// 150 tokens: two pages and a part, and an index block that is still open.
TEST_P(SeededContext, StepsGoOnFromItAndTheSeedDecides) {
  Loaded loaded("tiny", {.cache = GetParam()});
  StatePools& pools = loaded.model().states();
  const std::vector<int32_t> ids = tokens(150), next = {5, 17, 200};
  const auto logits_after = [&](uint64_t seed, uint64_t* hash) {
    const std::unique_ptr<SessionState> session = loaded.session();
    seed_context(pools, *session, ids, seed);
    EXPECT_EQ(session->n_committed(), 150);
    EXPECT_EQ(session->n_pending(), 0);
    EXPECT_EQ(std::vector<int32_t>(session->ids().begin(), session->ids().end()), ids);
    *hash = loaded.hash(*session);
    std::vector<float> logits = loaded.step(*session, next);
    EXPECT_EQ(session->n_committed(), 153);
    return logits;
  };
  uint64_t first = 0, again = 0, other = 0;
  const std::vector<float> a = logits_after(7, &first), b = logits_after(7, &again),
                           c = logits_after(8, &other);
  EXPECT_EQ(a, b);
  EXPECT_EQ(first, again);
  EXPECT_NE(a, c);
  EXPECT_NE(first, other);
  for (const float x : a) ASSERT_TRUE(std::isfinite(x));
}

// In one step or row after row: as from a context that was computed.
TEST_P(SeededContext, CutsOfWhatFollowsDoNotShow) {
  Loaded loaded("tiny", {.cache = GetParam()});
  StatePools& pools = loaded.model().states();
  const std::vector<int32_t> next = tokens(12);
  const auto logits_in = [&](int piece) {
    const std::unique_ptr<SessionState> session = loaded.session();
    seed_context(pools, *session, tokens(100), 3);
    return loaded.run(*session, next, piece);
  };
  EXPECT_EQ(logits_in(1), logits_in(12));
}

TEST_P(SeededContext, EveryCellAndStateBeforeTheEndIsFilled) {
  Loaded loaded("tiny", {.cache = GetParam()});
  StatePools& pools = loaded.model().states();
  const std::unique_ptr<SessionState> session = loaded.session();
  seed_context(pools, *session, tokens(100), 3);
  int n_layers = 0;
  for (int l = 0; l < pools.n_layers(); ++l) {
    const kernels::KvPool& kv = pools.layer(l).kv;
    if (kv.k == nullptr) continue;
    ++n_layers;
    const int64_t row = kv.dk * kernels::bytes_of(kv.type);
    for (int64_t i = 0; i < 100; ++i) {
      const int64_t page = session->pages()[static_cast<size_t>(i / kv.page_tokens)];
      for (int h = 0; h < kv.kv_heads; ++h) {
        const std::byte* key = kv.k + kv.cell_of_page(page, i, h, kv.dk);
        EXPECT_TRUE(std::any_of(key, key + row, [](std::byte x) { return x != std::byte{0}; }));
      }
    }
  }
  EXPECT_GT(n_layers, 0);
  for (const auto& [view, part] : pools.recurrent(session->slot(), session->side())) {
    double squares = 0;
    for (int64_t i = 0; i < view.size(); ++i) {
      squares += static_cast<double>(view.data()[i]) * static_cast<double>(view.data()[i]);
    }
    EXPECT_GT(squares / static_cast<double>(view.size()), 1e-3);
  }
}

// What one token looks at, by layer.
struct Looked : LayerObserver {
  int64_t n_tokens = 0;  // with the token itself
  std::vector<int64_t> attended, whole;
  void residual(int, View<const float>) override {}
  void experts(int, View<const int32_t>, View<const float>) override {}
  void selection(int, int ratio, View<const int32_t> blocks, View<const int32_t> n) override {
    ASSERT_EQ(n.extent(0), 1);
    if (ratio == 0 || n[0] < 0) return whole.push_back(n_tokens);
    EXPECT_LE(n[0], blocks.extent(1));
    for (int b = 0; b < n[0]; ++b) EXPECT_LT(blocks.row(0)[b], n_tokens / ratio);
    attended.push_back(n[0] * int64_t{ratio} + n_tokens % ratio);
  }
};

// With ten times the context a token attends to as many cells as before: only blocks are scored, of
// which there is one for each four tokens.
TEST(Selection, F062_CellsThatAreAttendedDoNotGrowWithTheContext) {
  Loaded loaded("tiny", {.max_context = 1024, .cache = kernels::CacheType::kF16, .yarn_factor = 2});
  constexpr int kBudget = 16, kRatio = 4;  // tokens, and those of a block, as the file says
  std::vector<int64_t> first;
  for (const int n : {64, 256, 1000}) {
    const std::unique_ptr<SessionState> session = loaded.session();
    seed_context(loaded.model().states(), *session, tokens(n), 3);
    Looked looked;
    looked.n_tokens = n + 1;
    loaded.model().set_observer(&looked);
    loaded.step(*session, std::vector<int32_t>{5});
    loaded.model().set_observer(nullptr);
    EXPECT_TRUE(looked.whole.empty()) << n;
    ASSERT_FALSE(looked.attended.empty()) << n;
    for (const int64_t cells : looked.attended) EXPECT_LE(cells, kBudget + kRatio - 1) << n;
    if (first.empty()) first = looked.attended;
    EXPECT_EQ(looked.attended, first) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Cells, SeededContext,
                         ::testing::Values(kernels::CacheType::kF32, kernels::CacheType::kF16,
                                           kernels::CacheType::kI8));

}  // namespace
}  // namespace strata::model
