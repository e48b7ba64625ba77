#include "strata/engine/expert_counts.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace strata::engine {
namespace {

memory::ExpertProfile counted(int chunk, bool draft, const std::vector<int32_t>& ids, int times) {
  model::InstanceOptions o;
  o.path = std::string(STRATA_SOURCE_DIR) + "/tests/golden/qwen4exp/tiny.gguf";
  o.threads = 2;
  o.max_context = 64;
  o.chunk = chunk;
  o.draft = draft;
  model::Instance instance(o);
  instance.load({});
  instance.seal();
  ExpertCounts counts(instance);
  for (int i = 0; i < times; ++i) counts.add(ids);
  return counts.profile();
}

int64_t sum_of(const memory::ExpertProfile& profile, int layer) {
  const auto begin = profile.counts.begin() + int64_t{layer} * profile.n_experts;
  return std::accumulate(begin, begin + profile.n_experts, int64_t{0});
}

TEST(ExpertCounts, EveryTokenChoosesInEveryLayer) {
  std::vector<int32_t> ids;
  for (int i = 0; i < 23; ++i) ids.push_back((i * 37 + 5) % 480);
  const memory::ExpertProfile whole = counted(32, true, ids, 1);
  const int trunk = whole.n_layers - 1;
  const int64_t a_token = sum_of(whole, 0) / 23;
  EXPECT_GT(a_token, 1);
  for (int l = 0; l < trunk; ++l) EXPECT_EQ(sum_of(whole, l), 23 * a_token) << l;
  EXPECT_EQ(sum_of(whole, trunk), 22 * a_token);  // the last token has no next one
  // Not the same experts whatever is read.
  EXPECT_NE(counted(32, true, {ids.begin(), ids.begin() + 11}, 2).counts, whole.counts);

  EXPECT_EQ(counted(7, true, ids, 1), whole);
  memory::ExpertProfile twice = whole;
  for (int32_t& count : twice.counts) count *= 2;
  EXPECT_EQ(counted(32, true, ids, 2).counts, twice.counts);
  const memory::ExpertProfile without = counted(32, false, ids, 1);
  for (int l = 0; l < trunk; ++l) EXPECT_EQ(sum_of(without, l), sum_of(whole, l));
  EXPECT_EQ(sum_of(without, trunk), 0);
}

}  // namespace
}  // namespace strata::engine
