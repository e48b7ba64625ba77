#include "strata/kernels/op_table.h"

#include <gtest/gtest.h>

#include <string>

#include "strata/kernels/test_machines.h"

namespace strata::kernels {
namespace {

// Calls f(name, op of a, op of b) for each member.
template <class F>
void for_each_op(const OpTable& a, F f) {
  const auto& [conv, copy_rows, draft_input, embed, expert_combine, expert_ffn, gated_norm, gather,
               gdn, gdn_commit, hc_read, hc_write, kv_append, matmul, ple_mix, pool_keys,
               qk_norm_rope, qsa_attend, qsa_select, router_topk, sample_rows, scatter_rows,
               shared_ffn, tail_commit, zero] = a;
  f("conv", static_cast<bool>(conv));
  f("copy_rows", static_cast<bool>(copy_rows));
  f("draft_input", static_cast<bool>(draft_input));
  f("embed", static_cast<bool>(embed));
  f("expert_combine", static_cast<bool>(expert_combine));
  f("expert_ffn", static_cast<bool>(expert_ffn));
  f("gated_norm", static_cast<bool>(gated_norm));
  f("gather", static_cast<bool>(gather));
  f("gdn", static_cast<bool>(gdn));
  f("gdn_commit", static_cast<bool>(gdn_commit));
  f("hc_read", static_cast<bool>(hc_read));
  f("hc_write", static_cast<bool>(hc_write));
  f("kv_append", static_cast<bool>(kv_append));
  f("matmul", static_cast<bool>(matmul));
  f("ple_mix", static_cast<bool>(ple_mix));
  f("pool_keys", static_cast<bool>(pool_keys));
  f("qk_norm_rope", static_cast<bool>(qk_norm_rope));
  f("qsa_attend", static_cast<bool>(qsa_attend));
  f("qsa_select", static_cast<bool>(qsa_select));
  f("router_topk", static_cast<bool>(router_topk));
  f("sample_rows", static_cast<bool>(sample_rows));
  f("scatter_rows", static_cast<bool>(scatter_rows));
  f("shared_ffn", static_cast<bool>(shared_ffn));
  f("tail_commit", static_cast<bool>(tail_commit));
  f("zero", static_cast<bool>(zero));
}

// A member that is added and forgotten in a backend's table, or here, is found.
TEST(OpTable, BackendsHaveEveryOp) {
  for_each_op(ref_ops(), [](const char* op, bool here) { EXPECT_TRUE(here) << "ref " << op; });
  for_each_op(cpu_ops(), [](const char* op, bool here) { EXPECT_TRUE(here) << "cpu " << op; });
  // Built or not as a whole; tables are looked up by the host.
  const bool built = static_cast<bool>(gpu_ops().matmul);
  for_each_op(gpu_ops(), [built](const char* op, bool here) {
    const std::string name = op;
    EXPECT_EQ(here, built && name != "embed" && name != "gather") << "gpu " << op;
  });
}

TEST(OpTable, AStreamTellsItsBackend) {
  EXPECT_EQ(&testing::machines()[0]->ops(), &ref_ops());
  EXPECT_EQ(&testing::machines().back()->ops(), &cpu_ops());
}

}  // namespace
}  // namespace strata::kernels
