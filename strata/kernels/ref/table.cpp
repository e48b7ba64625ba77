#include "strata/kernels/ops/entry.h"
#include "strata/kernels/ref/ref.h"

namespace strata::kernels {

const OpTable& ref_ops() {
  static constexpr OpTable kTable = {
      .conv = op<Conv, ref::conv>(),
      .copy_rows = op<CopyRows, ref::copy_rows>(),
      .draft_input = op<DraftInput, ref::draft_input>(),
      .embed = op<Embed, ref::embed>(),
      .expert_combine = op<ExpertCombine, ref::expert_combine>(),
      .expert_ffn = op<ExpertFfn, ref::expert_ffn>(),
      .gated_norm = op<GatedNorm, ref::gated_norm>(),
      .gather = op<Gather, ref::gather>(),
      .gdn = op<Gdn, ref::gdn>(),
      .gdn_commit = op<GdnCommit, ref::gdn_commit>(),
      .hc_read = op<HcRead, ref::hc_read>(),
      .hc_write = op<HcWrite, ref::hc_write>(),
      .kv_append = op<KvAppend, ref::kv_append>(),
      .matmul = op<MatMul, ref::matmul>(),
      .ple_mix = op<PleMix, ref::ple_mix>(),
      .pool_keys = op<PoolKeys, ref::pool_keys>(),
      .qk_norm_rope = op<QkNormRope, ref::qk_norm_rope>(),
      .qsa_attend = op<QsaAttend, ref::qsa_attend>(),
      .qsa_select = op<QsaSelect, ref::qsa_select>(),
      .router_topk = op<RouterTopk, ref::router_topk>(),
      .sample_rows = op<SampleRows, ref::sample_rows, ref::sample_rows_scratch>(),
      .scatter_rows = op<ScatterRows, ref::scatter_rows>(),
      .shared_ffn = op<SharedFfn, ref::shared_ffn>(),
      .tail_commit = op<TailCommit, ref::tail_commit>(),
      .zero = op<Zero, ref::zero>(),
  };
  return kTable;
}

}  // namespace strata::kernels
