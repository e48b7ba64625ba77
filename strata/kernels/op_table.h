#pragma once

#include "strata/device/stream.h"
#include "strata/kernels/ops/attention.h"
#include "strata/kernels/ops/gdn.h"
#include "strata/kernels/ops/hyper_connection.h"
#include "strata/kernels/ops/matmul.h"
#include "strata/kernels/ops/moe.h"
#include "strata/kernels/ops/ple.h"
#include "strata/kernels/ops/run.h"
#include "strata/kernels/ops/sample.h"

namespace strata::kernels {

// What one backend can do. A null entry means "not here". Ops are called through kernels::run, and
// kernels::supports says what is there.
struct OpTable {
  Op<Conv> conv;
  Op<CopyRows> copy_rows;
  Op<DraftInput> draft_input;
  Op<Embed> embed;
  Op<ExpertCombine> expert_combine;
  Op<ExpertFfn> expert_ffn;
  Op<GatedNorm> gated_norm;
  Op<Gather> gather;
  Op<Gdn> gdn;
  Op<GdnCommit> gdn_commit;
  Op<HcRead> hc_read;
  Op<HcWrite> hc_write;
  Op<KvAppend> kv_append;
  Op<MatMul> matmul;
  Op<PleMix> ple_mix;
  Op<PoolKeys> pool_keys;
  Op<QkNormRope> qk_norm_rope;
  Op<QsaAttend> qsa_attend;
  Op<QsaSelect> qsa_select;
  Op<RouterTopk> router_topk;
  Op<SampleRows> sample_rows;
  Op<ScatterRows> scatter_rows;
  Op<SharedFfn> shared_ffn;
  Op<TailCommit> tail_commit;
  Op<Zero> zero;
};

const OpTable& ref_ops();  // plain and slow, the meaning of each op
const OpTable& cpu_ops();  // AVX2 or AVX-512, chosen at run time
const OpTable& gpu_ops();  // empty where no card backend is built

const OpTable& ops_for(const device::Stream& stream);

}  // namespace strata::kernels
