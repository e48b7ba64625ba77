#pragma once

#include "strata/base/carver.h"
#include "strata/kernels/ops/rows.h"
#include "strata/model/arch/qwen4exp_config.h"

namespace strata::model {

// The activations of one step, for max_rows rows. Mixer, n-gram embedding and experts do not live
// at the same time, so their arrays overlay each other.
struct Qwen4ExpBuffers {
  View<float> residual;   // [rows, streams, width]
  View<float> u, inj, y;  // [rows, width], [rows, streams], [rows, width]

  // Gated DeltaNet.
  View<float> qkv, conv, z, beta, alpha, o, gated;
  // Attention.
  View<float> q_gate, k_raw, v, index_q_raw, index_k_raw, q, k, index_q, attended;
  View<int32_t> blocks, n_blocks;
  // Experts.
  View<float> router, weight, expert_out, shared, shared_gate;
  View<int32_t> expert_id;
  // N-gram embedding.
  View<float> ple_emb, ple_key, ple_value, ple_z, ple_normed;
  // Head and draft.
  View<float> out_residual, out_u, logits;  // [max_out, ...]
  View<float> draft_e, draft_residual, draft_pairs;

  // The same memory seen as so many rows: a few cost a card less when it is told that there are
  // few. The arrays by max_out stay as they are.
  Qwen4ExpBuffers first(int n_rows) const;

  View<std::byte> scratch;

  // base null: counts only, and the views are null. Returns the bytes.
  Bytes carve(const Qwen4ExpConfig& c, int max_rows, int max_out, bool draft, Bytes scratch_bytes,
              std::byte* base);
};

}  // namespace strata::model
