#include "strata/kernels/cpu/cpu.h"
#include "strata/kernels/ops/entry.h"
#include "strata/kernels/ref/ref.h"

namespace strata::kernels {

const OpTable& cpu_ops() {
  static constexpr OpTable kTable = {
      .conv = op<Conv, cpu::conv>(cpu::conv_takes),
      .copy_rows = op<CopyRows, cpu::copy_rows>(),
      .draft_input = op<DraftInput, cpu::draft_input>(),
      .embed = op<Embed, cpu::embed>(),
      .expert_combine = op<ExpertCombine, cpu::expert_combine>(cpu::expert_combine_takes),
      .expert_ffn = op<ExpertFfn, cpu::expert_ffn, cpu::expert_ffn_scratch>(),
      .gated_norm = op<GatedNorm, cpu::gated_norm>(),
      .gather = op<Gather, cpu::gather>(),
      .gdn = op<Gdn, cpu::gdn, cpu::gdn_scratch>(cpu::gdn_takes),
      .gdn_commit = op<GdnCommit, cpu::gdn_commit>(),
      .hc_read = op<HcRead, cpu::hc_read, cpu::hc_read_scratch>(),
      .hc_write = op<HcWrite, cpu::hc_write>(),
      .kv_append = op<KvAppend, cpu::kv_append>(),
      .matmul = op<MatMul, cpu::matmul_op, cpu::matmul_scratch>(),
      .ple_mix = op<PleMix, cpu::ple_mix>(),
      .pool_keys = op<PoolKeys, cpu::pool_keys>(cpu::pool_keys_takes),
      .qk_norm_rope = op<QkNormRope, cpu::qk_norm_rope>(),
      .qsa_attend = op<QsaAttend, cpu::qsa_attend, cpu::qsa_attend_scratch>(cpu::qsa_attend_takes),
      .qsa_select = op<QsaSelect, cpu::qsa_select, cpu::qsa_select_scratch>(),
      .router_topk = op<RouterTopk, cpu::router_topk>(cpu::router_topk_takes),
      .sample_rows = op<SampleRows, cpu::sample_rows, cpu::sample_rows_scratch>(),
      .scatter_rows = op<ScatterRows, cpu::scatter_rows>(),
      .shared_ffn = op<SharedFfn, cpu::shared_ffn, cpu::shared_ffn_scratch>(),
      .tail_commit = op<TailCommit, cpu::tail_commit>(),
      .zero = op<Zero, ref::zero>(),
  };
  return kTable;
}

}  // namespace strata::kernels
