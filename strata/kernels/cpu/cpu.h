#pragma once

#include <cstddef>
#include <cstdint>

#include "strata/base/carver.h"
#include "strata/base/thread_pool.h"
#include "strata/kernels/cpu/isa/row_fns.h"
#include "strata/kernels/cpu/matmul.h"
#include "strata/kernels/op_table.h"

// Shared by the ops of the CPU backend. Each op is a body that runs on a pool; table.cpp queues it.
namespace strata::kernels::cpu {

const RowFns& row_fns();

WeightRows rows_of(const Weight& w);

// Quantised copies of the same activations, one for each block size that is asked for.
class Activations {
 public:
  Activations(const float* x, int64_t stride, int n_rows, int cols)
      : float_{.x = x, .stride = stride, .n_rows = n_rows}, n_rows_(n_rows), cols_(cols) {}
  // Reserves what w needs. Call for every weight, then quantise.
  void want(const Weight& w, Carver& carver);
  void quantise(int first_row, int end_row) const;  // threads may share
  void quantise(ThreadPool& pool) const;
  // y[out row][r] = (w x)[r] for weight rows [first, end) and the activation rows of index.
  void multiply(const Weight& w, int first, int end, std::span<const int32_t> index,
                const OutRows& out) const;
  int n_rows() const { return n_rows_; }

 private:
  FloatRows float_;
  QuantRows by32_, by256_;
  int n_rows_, cols_;
};

// About how long n_rows activations times `rows` weight rows take, for the pool's sharing.
double matmul_ns(const Weight& w, int64_t rows, int n_rows);

void matmul_op(const MatMul& a, ThreadPool& pool);
void embed(const Embed& a, ThreadPool& pool);
void gather(const Gather& a, ThreadPool& pool);
void copy_rows(const CopyRows& a, ThreadPool& pool);
void scatter_rows(const ScatterRows& a, ThreadPool& pool);
void hc_read(const HcRead& a, ThreadPool& pool);
void hc_write(const HcWrite& a, ThreadPool& pool);
void draft_input(const DraftInput& a, ThreadPool& pool);
void ple_mix(const PleMix& a, ThreadPool& pool);
void conv(const Conv& a, ThreadPool& pool);
void tail_commit(const TailCommit& a, ThreadPool& pool);
void gdn(const Gdn& a, ThreadPool& pool);
void gdn_commit(const GdnCommit& a, ThreadPool& pool);
void gated_norm(const GatedNorm& a, ThreadPool& pool);
void qk_norm_rope(const QkNormRope& a, ThreadPool& pool);
void kv_append(const KvAppend& a, ThreadPool& pool);
void pool_keys(const PoolKeys& a, ThreadPool& pool);
void qsa_select(const QsaSelect& a, ThreadPool& pool);
void qsa_attend(const QsaAttend& a, ThreadPool& pool);
void router_topk(const RouterTopk& a, ThreadPool& pool);
void expert_ffn(const ExpertFfn& a, ThreadPool& pool);
void expert_combine(const ExpertCombine& a, ThreadPool& pool);
void shared_ffn(const SharedFfn& a, ThreadPool& pool);
void sample_rows(const SampleRows& a, ThreadPool& pool);

// What these take is limited by buffers on the stack.
bool conv_takes(const Conv& a);
bool expert_combine_takes(const ExpertCombine& a);
bool gdn_takes(const Gdn& a);
bool pool_keys_takes(const PoolKeys& a);
bool qsa_attend_takes(const QsaAttend& a);
bool router_topk_takes(const RouterTopk& a);

Bytes matmul_scratch(const device::Stream& stream, const MatMul& a);
Bytes hc_read_scratch(const device::Stream& stream, const HcRead& a);
Bytes gdn_scratch(const device::Stream& stream, const Gdn& a);
Bytes qsa_select_scratch(const device::Stream& stream, const QsaSelect& a);
Bytes qsa_attend_scratch(const device::Stream& stream, const QsaAttend& a);
Bytes expert_ffn_scratch(const device::Stream& stream, const ExpertFfn& a);
Bytes sample_rows_scratch(const device::Stream& stream, const SampleRows& a);
Bytes shared_ffn_scratch(const device::Stream& stream, const SharedFfn& a);

}  // namespace strata::kernels::cpu
