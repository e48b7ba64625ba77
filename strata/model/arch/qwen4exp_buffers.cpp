#include "strata/model/arch/qwen4exp_buffers.h"

#include <algorithm>

namespace strata::model {
namespace {

template <class T>
void narrow(View<T>& view, int64_t n) {
  switch (view.rank()) {
    case 1:
      view = View<T>(view.data(), {n});
      break;
    case 2:
      view = View<T>(view.data(), {n, view.extent(1)});
      break;
    case 3:
      view = View<T>(view.data(), {n, view.extent(1), view.extent(2)});
      break;
    default:
      break;  // an array that this model does not have
  }
}

}  // namespace

Qwen4ExpBuffers Qwen4ExpBuffers::first(int n_rows) const {
  Qwen4ExpBuffers b = *this;
  for (View<float>* view : {&b.residual,    &b.u,           &b.inj,         &b.y,
                            &b.qkv,         &b.conv,        &b.z,           &b.beta,
                            &b.alpha,       &b.o,           &b.gated,       &b.q_gate,
                            &b.k_raw,       &b.v,           &b.index_q_raw, &b.q,
                            &b.index_k_raw, &b.k,           &b.index_q,     &b.attended,
                            &b.router,      &b.weight,      &b.expert_out,  &b.shared,
                            &b.ple_emb,     &b.shared_gate, &b.ple_key,     &b.ple_value,
                            &b.ple_z,       &b.ple_normed,  &b.draft_e,     &b.draft_residual,
                            &b.draft_pairs}) {
    narrow(*view, n_rows);
  }
  for (View<int32_t>* view : {&b.blocks, &b.n_blocks, &b.expert_id}) narrow(*view, n_rows);
  return b;
}

Bytes Qwen4ExpBuffers::carve(const Qwen4ExpConfig& c, int max_rows, int max_out, bool draft,
                             Bytes scratch_bytes, std::byte* base) {
  Carver m(base);
  const int64_t n = max_rows;
  residual = m.view<float>({n, c.streams, c.width});
  u = m.view<float>({n, c.width});
  inj = m.view<float>({n, c.streams});
  y = m.view<float>({n, c.width});
  logits = m.view<float>({max_out, c.n_vocab});

  const Bytes overlay = m.mark();
  qkv = m.view<float>({n, c.gdn_channels()});
  conv = m.view<float>({n, c.gdn_channels()});
  z = m.view<float>({n, c.gdn_inner()});
  beta = m.view<float>({n, c.gdn_value_heads});
  alpha = m.view<float>({n, c.gdn_value_heads});
  o = m.view<float>({n, c.gdn_inner()});
  gated = m.view<float>({n, c.gdn_inner()});

  m.rewind(overlay);
  q_gate = m.view<float>({n, int64_t{c.heads} * (c.dk + c.dv)});
  k_raw = m.view<float>({n, int64_t{c.kv_heads} * c.dk});
  v = m.view<float>({n, int64_t{c.kv_heads} * c.dv});
  q = m.view<float>({n, int64_t{c.heads} * c.dk});
  k = m.view<float>({n, int64_t{c.kv_heads} * c.dk});
  attended = m.view<float>({n, int64_t{c.heads} * c.dv});
  index_q_raw = m.view<float>({n, int64_t{c.index_heads} * c.index_dim});
  index_q = m.view<float>({n, int64_t{c.index_heads} * c.index_dim});
  index_k_raw = m.view<float>({n, c.index_dim});
  int budget = 0;
  for (int l = 0; l < c.n_blocks(); ++l) budget = std::max(budget, c.index_budget(l));
  blocks = m.view<int32_t>({n, budget});
  n_blocks = m.view<int32_t>({n});

  m.rewind(overlay);
  router = m.view<float>({n, c.n_experts});
  expert_id = m.view<int32_t>({n, c.top_k});
  weight = m.view<float>({n, c.top_k});
  expert_out = m.view<float>({n, c.top_k, c.width});
  shared = m.view<float>({n, c.width});
  shared_gate = m.view<float>({n, 1});

  m.rewind(overlay);
  if (!c.ple_layers.empty()) {
    ple_emb = m.view<float>({n, c.width});
    ple_key = m.view<float>({n, c.wide()});
    ple_value = m.view<float>({n, c.width});
    ple_z = m.view<float>({n, c.wide()});
    ple_normed = m.view<float>({n, c.wide()});
  }

  m.rewind(overlay);
  out_residual = m.view<float>({max_out, c.streams, c.width});
  out_u = m.view<float>({max_out, c.width});

  m.rewind(overlay);
  if (draft) {
    draft_e = m.view<float>({n, 1, c.width});
    draft_residual = m.view<float>({n, c.streams, c.width});
    draft_pairs = m.view<float>({n, c.streams, 2 * int64_t{c.width}});
  }

  m.rewind(m.peak());
  scratch = m.view<std::byte>({static_cast<int64_t>(scratch_bytes)});
  return m.peak();
}

}  // namespace strata::model
