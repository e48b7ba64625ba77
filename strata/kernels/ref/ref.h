#pragma once

#include "strata/kernels/op_table.h"

// The plain backend: each op as its formula, scalar and in the canonical order, so that a fast
// kernel can be asked for the same bits. Slow on purpose.
namespace strata::kernels::ref {

void matmul(const MatMul& a);
void embed(const Embed& a);
void gather(const Gather& a);
void copy_rows(const CopyRows& a);
void scatter_rows(const ScatterRows& a);
void hc_read(const HcRead& a);
void hc_write(const HcWrite& a);
void draft_input(const DraftInput& a);
void ple_mix(const PleMix& a);
void conv(const Conv& a);
void tail_commit(const TailCommit& a);
void gdn(const Gdn& a);
void gdn_commit(const GdnCommit& a);
void gated_norm(const GatedNorm& a);
void qk_norm_rope(const QkNormRope& a);
void kv_append(const KvAppend& a);
void pool_keys(const PoolKeys& a);
void qsa_select(const QsaSelect& a);
void qsa_attend(const QsaAttend& a);
void router_topk(const RouterTopk& a);
void expert_ffn(const ExpertFfn& a);
void expert_combine(const ExpertCombine& a);
void shared_ffn(const SharedFfn& a);
void sample_rows(const SampleRows& a);
Bytes sample_rows_scratch(const device::Stream& stream, const SampleRows& a);
void zero(const Zero& a);

// y[0, w.rows) = w x, one row of x. Allocates; the reference may.
void multiply_row(const Weight& w, const float* x, float* y);

}  // namespace strata::kernels::ref
