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

INSTANTIATE_TEST_SUITE_P(Cells, SeededContext,
                         ::testing::Values(kernels::CacheType::kF32, kernels::CacheType::kF16,
                                           kernels::CacheType::kI8));

}  // namespace
}  // namespace strata::model
