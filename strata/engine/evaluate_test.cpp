#include "strata/engine/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "strata/base/error.h"

namespace strata::engine {
namespace {

TEST(Difference, KnownNumbers) {
  const std::vector<float> even = {0, 0}, skewed = {std::log(3.0f), 0};
  Difference same;
  same.add(skewed, skewed);
  EXPECT_EQ(same.max_abs, 0);
  EXPECT_NEAR(same.mean_kl(), 0, 1e-15);
  EXPECT_EQ(same.agreement(), 1);

  // Reference 3/4 and 1/4 against our 1/2 and 1/2.
  Difference d;
  d.add(even, skewed);
  const double kl = 0.75 * std::log(1.5) + 0.25 * std::log(0.5);
  EXPECT_NEAR(d.mean_kl(), kl, 1e-7);
  EXPECT_NEAR(d.max_abs, std::log(3.0), 1e-6);
  EXPECT_EQ(d.agreement(), 1);  // of a tie the lowest id is best
  d.add(std::vector<float>{0, 1}, skewed);
  EXPECT_EQ(d.n_rows, 2);
  EXPECT_EQ(d.agreement(), 0.5);
  EXPECT_EQ(Difference().mean_kl(), 0);
}

TEST(Difference, LargeLogitsDoNotOverflow) {
  Difference d;
  d.add(std::vector<float>{1e30f, 0}, std::vector<float>{1e30f, 0});
  EXPECT_EQ(d.mean_kl(), 0);
  EXPECT_NEAR(negative_log_likelihood(std::vector<float>{1000, 1000, -1000}, 1), std::log(2.0),
              1e-12);
}

class EvaluatorTest : public ::testing::Test {
 protected:
  static model::InstanceOptions options(int chunk) {
    model::InstanceOptions o;
    o.path = std::string(STRATA_SOURCE_DIR) + "/tests/golden/qwen4exp/tiny.gguf";
    o.threads = 2;
    o.max_context = 64;
    o.slots = 2;
    o.chunk = chunk;
    o.max_out = 3;
    o.draft = true;
    return o;
  }
  // All rows of trunk and drafts, in one list each.
  static std::vector<std::vector<float>> rows(int chunk, const std::vector<int32_t>& ids) {
    model::Instance instance(options(chunk));
    instance.load({});
    instance.seal();
    Evaluator evaluator(instance);
    std::vector<std::vector<float>> all(3);
    std::vector<size_t> next(3);
    evaluator.run(ids, 2, [&](int draft, size_t first, View<const float> logits) {
      const size_t d = static_cast<size_t>(draft);
      EXPECT_EQ(first, next[d]);  // each row once, in order
      next[d] += static_cast<size_t>(logits.extent(0));
      all[d].insert(all[d].end(), logits.data(), logits.data() + logits.size());
    });
    return all;
  }
};

TEST_F(EvaluatorTest, ChunksAndGroupsChangeNoBit) {
  std::vector<int32_t> ids;
  for (int i = 0; i < 23; ++i) ids.push_back((i * 37 + 5) % 480);
  const auto whole = rows(32, ids);
  EXPECT_EQ(whole[0].size(), 23u * 512u);
  EXPECT_EQ(whole[1].size(), 22u * 512u);
  EXPECT_EQ(whole[2].size(), 21u * 512u);
  EXPECT_EQ(rows(7, ids), whole);
  EXPECT_EQ(rows(2, ids), whole);
  // The last chunk has rows of the trunk alone, and one with no row of the second draft.
  EXPECT_EQ(rows(22, ids), whole);
  EXPECT_EQ(rows(21, ids), whole);
}

TEST_F(EvaluatorTest, SequencesThatCannotBeAreRefused) {
  model::Instance instance(options(8));
  instance.load({});
  Evaluator evaluator(instance);
  const auto nothing = [](int, size_t, View<const float>) {};
  EXPECT_THROW(evaluator.run(std::vector<int32_t>{}, 0, nothing), Error);
  EXPECT_THROW(evaluator.run(std::vector<int32_t>(65, 1), 0, nothing), Error);
  EXPECT_THROW(evaluator.run(std::vector<int32_t>{1, 512}, 0, nothing), Error);
  EXPECT_THROW(evaluator.run(std::vector<int32_t>{-1}, 0, nothing), Error);
}

}  // namespace
}  // namespace strata::engine
