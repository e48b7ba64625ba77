#pragma once

#include "strata/device/stream.h"
#include "strata/kernels/op_table.h"

// What each op reads, writes and computes at its largest shape: the price that a simulated card
// charges and the name under which faults and waits are reported.
namespace strata::kernels {

device::Cost cost_of(const Conv& a);
device::Cost cost_of(const CopyRows& a);
device::Cost cost_of(const DraftInput& a);
device::Cost cost_of(const Embed& a);
device::Cost cost_of(const ExpertCombine& a);
device::Cost cost_of(const ExpertFfn& a);
device::Cost cost_of(const GatedNorm& a);
device::Cost cost_of(const Gather& a);
device::Cost cost_of(const Gdn& a);
device::Cost cost_of(const GdnCommit& a);
device::Cost cost_of(const HcRead& a);
device::Cost cost_of(const HcWrite& a);
device::Cost cost_of(const KvAppend& a);
device::Cost cost_of(const MatMul& a);
device::Cost cost_of(const PleMix& a);
device::Cost cost_of(const PoolKeys& a);
device::Cost cost_of(const QkNormRope& a);
device::Cost cost_of(const QsaAttend& a);
device::Cost cost_of(const QsaSelect& a);
device::Cost cost_of(const RouterTopk& a);
device::Cost cost_of(const SampleRows& a);
device::Cost cost_of(const ScatterRows& a);
device::Cost cost_of(const SharedFfn& a);
device::Cost cost_of(const TailCommit& a);
device::Cost cost_of(const Zero& a);

}  // namespace strata::kernels
