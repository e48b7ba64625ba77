#include "strata/kernels/gpu/gpu.h"
#include "strata/kernels/gpu/launch.h"

namespace strata::kernels {

const OpTable& gpu_ops() {
  using gpu::op;
  static constexpr OpTable kTable = {
      .conv = op<Conv, gpu::conv>(),
      .copy_rows = op<CopyRows, gpu::copy_rows>(),
      .draft_input = op<DraftInput, gpu::draft_input>(),
      .expert_combine = op<ExpertCombine, gpu::expert_combine>(gpu::expert_combine_takes),
      .expert_ffn = op<ExpertFfn, gpu::expert_ffn, gpu::expert_ffn_scratch>(gpu::expert_ffn_takes),
      .gated_norm = op<GatedNorm, gpu::gated_norm>(),
      .gdn = op<Gdn, gpu::gdn>(gpu::gdn_takes),
      .gdn_commit = op<GdnCommit, gpu::gdn_commit>(),
      .hc_read = op<HcRead, gpu::hc_read, gpu::hc_read_scratch>(gpu::hc_read_takes),
      .hc_write = op<HcWrite, gpu::hc_write>(),
      .kv_append = op<KvAppend, gpu::kv_append>(),
      .matmul = op<MatMul, gpu::matmul, gpu::matmul_scratch>(),
      .ple_mix = op<PleMix, gpu::ple_mix>(),
      .pool_keys = op<PoolKeys, gpu::pool_keys>(),
      .qk_norm_rope = op<QkNormRope, gpu::qk_norm_rope>(),
      .qsa_attend = op<QsaAttend, gpu::qsa_attend, gpu::qsa_attend_scratch>(),
      .qsa_select = op<QsaSelect, gpu::qsa_select, gpu::qsa_select_scratch>(),
      .router_topk = op<RouterTopk, gpu::router_topk>(gpu::router_topk_takes),
      .sample_rows = op<SampleRows, gpu::sample_rows, gpu::sample_rows_scratch>(),
      .scatter_rows = op<ScatterRows, gpu::scatter_rows>(),
      .shared_ffn = op<SharedFfn, gpu::shared_ffn, gpu::shared_ffn_scratch>(),
      .tail_commit = op<TailCommit, gpu::tail_commit>(),
      .zero = op<Zero, gpu::zero>(),
  };
  return kTable;
}

}  // namespace strata::kernels
