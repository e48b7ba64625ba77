#pragma once

#include "strata/device/gpu/api.h"
#include "strata/kernels/op_table.h"

// The backend of cards: each op launches kernels on the runtime's stream and returns. All follow
// the canonical order of docs/numerics.md, so their bits are those of the plain backend. Embed and
// Gather are not here: tables that are looked up by row stay with the host.
namespace strata::kernels::gpu {

using NativeStream = device::gpu::NativeStream;

void conv(const Conv& a, NativeStream s);
void copy_rows(const CopyRows& a, NativeStream s);
void draft_input(const DraftInput& a, NativeStream s);
void expert_combine(const ExpertCombine& a, NativeStream s);
void expert_ffn(const ExpertFfn& a, NativeStream s);
void gated_norm(const GatedNorm& a, NativeStream s);
void gdn(const Gdn& a, NativeStream s);
void gdn_commit(const GdnCommit& a, NativeStream s);
void hc_read(const HcRead& a, NativeStream s);
void hc_write(const HcWrite& a, NativeStream s);
void kv_append(const KvAppend& a, NativeStream s);
void matmul(const MatMul& a, NativeStream s);
void ple_mix(const PleMix& a, NativeStream s);
void pool_keys(const PoolKeys& a, NativeStream s);
void qk_norm_rope(const QkNormRope& a, NativeStream s);
void qsa_attend(const QsaAttend& a, NativeStream s);
void qsa_select(const QsaSelect& a, NativeStream s);
void router_topk(const RouterTopk& a, NativeStream s);
void sample_rows(const SampleRows& a, NativeStream s);
void scatter_rows(const ScatterRows& a, NativeStream s);
void shared_ffn(const SharedFfn& a, NativeStream s);
void tail_commit(const TailCommit& a, NativeStream s);
void zero(const Zero& a, NativeStream s);

// What these take is limited by arrays of the kernels.
bool expert_combine_takes(const ExpertCombine& a);
bool expert_ffn_takes(const ExpertFfn& a);
bool gdn_takes(const Gdn& a);
bool hc_read_takes(const HcRead& a);
bool router_topk_takes(const RouterTopk& a);

Bytes expert_ffn_scratch(const device::Stream& stream, const ExpertFfn& a);
Bytes hc_read_scratch(const device::Stream& stream, const HcRead& a);
Bytes matmul_scratch(const device::Stream& stream, const MatMul& a);
Bytes qsa_attend_scratch(const device::Stream& stream, const QsaAttend& a);
Bytes qsa_select_scratch(const device::Stream& stream, const QsaSelect& a);
Bytes sample_rows_scratch(const device::Stream& stream, const SampleRows& a);
Bytes shared_ffn_scratch(const device::Stream& stream, const SharedFfn& a);

}  // namespace strata::kernels::gpu
