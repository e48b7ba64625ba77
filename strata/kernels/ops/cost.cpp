#include "strata/kernels/ops/cost.h"

#include <algorithm>
#include <initializer_list>

namespace strata::kernels {
namespace {

template <class T>
Bytes bytes(const View<T>& view) {
  return static_cast<Bytes>(view.size()) * sizeof(T);
}

// The weights are read once, and each row of x meets each of them.
struct Weights {
  Bytes read = 0;
  uint64_t ops = 0;
  Weights(std::initializer_list<Weight> weights, int64_t rows) {
    for (const Weight& w : weights) {
      if (w.cols == 0) continue;
      read += static_cast<Bytes>(w.rows) * quant::row_bytes(w.type, w.cols);
      ops += 2 * static_cast<uint64_t>(rows) * static_cast<uint64_t>(w.rows) *
             static_cast<uint64_t>(w.cols);
    }
  }
};

device::Cost elementwise(const char* op, Bytes read, Bytes written) {
  return {.op = op, .read = read, .written = written, .ops = (read + written) / 4};
}

}  // namespace

device::Cost cost_of(const Conv& a) { return elementwise(Conv::kName, bytes(a.x), bytes(a.out)); }
device::Cost cost_of(const CopyRows& a) {
  return elementwise(CopyRows::kName, bytes(a.out), bytes(a.out));
}
device::Cost cost_of(const DraftInput& a) {
  return elementwise(DraftInput::kName, bytes(a.e) + bytes(a.residual), bytes(a.out));
}
device::Cost cost_of(const Embed& a) {
  const Bytes rows = static_cast<Bytes>(a.out.extent(0));
  return elementwise(Embed::kName, rows * quant::row_bytes(a.table.type, a.table.cols),
                     bytes(a.out));
}
device::Cost cost_of(const ExpertCombine& a) {
  return elementwise(ExpertCombine::kName, bytes(a.expert) + bytes(a.shared), bytes(a.y));
}
device::Cost cost_of(const ExpertFfn& a) {
  const int64_t rows = a.x.extent(0), pairs = a.id.size();
  const Weights one({a.shape.gate, a.shape.up, a.shape.down}, 1);
  const Weights shared({a.shared.gate, a.shared.up, a.shared.down}, rows);
  const int64_t distinct = std::min<int64_t>(pairs, a.parts.extent(0));
  return {.op = ExpertFfn::kName,
          .read = one.read * static_cast<Bytes>(distinct) + shared.read + bytes(a.x),
          .written = bytes(a.out) + bytes(a.shared.y),
          .ops = one.ops * static_cast<uint64_t>(pairs) + shared.ops};
}
device::Cost cost_of(const GatedNorm& a) {
  return elementwise(GatedNorm::kName, bytes(a.o) + bytes(a.z), bytes(a.out));
}
device::Cost cost_of(const Gather& a) {
  const Bytes rows = static_cast<Bytes>(a.index.size());
  return elementwise(Gather::kName, rows * quant::row_bytes(a.table.type, a.table.cols),
                     bytes(a.out));
}
device::Cost cost_of(const Gdn& a) {
  const Bytes state = static_cast<Bytes>(a.value_heads) * a.dk * a.dv * 4;
  const Bytes seqs = static_cast<Bytes>(a.rows.max_seqs);
  return {.op = Gdn::kName,
          .read = state * seqs + bytes(a.qkv),
          .written = state * seqs + bytes(a.o),
          .ops = static_cast<uint64_t>(a.rows.max_rows) * state * 2};
}
device::Cost cost_of(const GdnCommit& a) {
  const Bytes state = static_cast<Bytes>(a.value_heads) * a.dk * a.dv * 4;
  return elementwise(GdnCommit::kName, state * a.rows.max_seqs, state * a.rows.max_seqs);
}
device::Cost cost_of(const HcRead& a) {
  const Weights w({a.down, a.up, a.inject}, a.residual.extent(0));
  return {.op = HcRead::kName,
          .read = w.read + bytes(a.residual),
          .written = bytes(a.u) + bytes(a.inj),
          .ops = w.ops};
}
device::Cost cost_of(const HcWrite& a) {
  return elementwise(HcWrite::kName, bytes(a.residual) + bytes(a.y), bytes(a.residual));
}
device::Cost cost_of(const KvAppend& a) {
  const Bytes in = bytes(a.k) + bytes(a.v);
  return elementwise(KvAppend::kName, in, in / 4 * static_cast<Bytes>(bytes_of(a.pool.type)));
}
device::Cost cost_of(const MatMul& a) {
  device::Cost cost{.op = MatMul::kName, .read = bytes(a.x)};
  for (int i = 0; i < a.n_out; ++i) {
    const Weights w({a.out[i].w}, a.x.extent(0));
    cost.read += w.read;
    cost.ops += w.ops;
    cost.written += bytes(a.out[i].y);
  }
  return cost;
}
device::Cost cost_of(const PleMix& a) {
  return elementwise(PleMix::kName, bytes(a.key) + bytes(a.value) + bytes(a.residual),
                     bytes(a.z) + bytes(a.normed));
}
device::Cost cost_of(const PoolKeys& a) {
  return elementwise(PoolKeys::kName, bytes(a.raw), bytes(a.raw) / 4);
}
device::Cost cost_of(const QkNormRope& a) {
  return elementwise(QkNormRope::kName, bytes(a.out), bytes(a.out));
}
device::Cost cost_of(const QsaAttend& a) {
  const int64_t selected = a.budget > 0 ? (int64_t{a.budget} + 1) * a.pool.ratio : a.max_context;
  const Bytes cells =
      static_cast<Bytes>(a.rows.max_rows) * static_cast<Bytes>(std::min(selected, a.max_context));
  const int64_t page = a.pool.page_bytes(a.pool.dk) + a.pool.page_bytes(a.pool.dv);
  return {.op = QsaAttend::kName,
          .read = cells * static_cast<Bytes>(page / a.pool.page_tokens),
          .written = bytes(a.out),
          .ops = 2 * cells * static_cast<uint64_t>(a.heads * (a.pool.dk + a.pool.dv))};
}
device::Cost cost_of(const QsaSelect& a) {
  const Bytes keys = static_cast<Bytes>(a.rows.max_rows) *
                     static_cast<Bytes>(a.max_context / a.pool.ratio) *
                     static_cast<Bytes>(a.pool.index_dim);
  return {.op = QsaSelect::kName,
          .read = keys * static_cast<Bytes>(bytes_of(a.pool.pooled_type())),
          .written = bytes(a.blocks),
          .ops = 2 * keys * static_cast<uint64_t>(a.heads)};
}
device::Cost cost_of(const RouterTopk& a) {
  return elementwise(RouterTopk::kName, bytes(a.logits), bytes(a.id) + bytes(a.weight));
}
device::Cost cost_of(const SampleRows& a) {
  return elementwise(SampleRows::kName, bytes(a.logits), bytes(a.chosen));
}
device::Cost cost_of(const ScatterRows& a) {
  return elementwise(ScatterRows::kName, bytes(a.x), bytes(a.x));
}
device::Cost cost_of(const SharedFfn& a) {
  const Weights w({a.gate, a.up, a.down}, a.x.extent(0));
  return {.op = SharedFfn::kName, .read = w.read + bytes(a.x), .written = bytes(a.y), .ops = w.ops};
}
device::Cost cost_of(const TailCommit& a) {
  const Bytes tail = static_cast<Bytes>(a.tail.depth() * a.tail.width()) * 4;
  return elementwise(TailCommit::kName, tail * a.rows.max_seqs, tail * a.rows.max_seqs);
}
device::Cost cost_of(const Zero& a) { return elementwise(Zero::kName, 0, bytes(a.out)); }

}  // namespace strata::kernels
