#pragma once

#include "strata/kernels/ops/op.h"
#include "strata/kernels/ops/rows.h"

namespace strata::kernels {

// Softmax over all experts, the top_k largest by falling probability (of equals the lower index
// first), renormalised to sum 1.
// Shapes: logits [max_rows, experts], overwritten; id, weight [max_rows, top_k].
struct RouterTopk {
  const int32_t* n_rows = nullptr;
  View<float> logits;
  int top_k = 0;
  View<int32_t> id;
  View<float> weight;
};

// Where one expert's matrices lie, in memory that the backend can read; null: not here.
struct ExpertBlob {
  const std::byte* gate = nullptr;
  const std::byte* up = nullptr;
  const std::byte* down = nullptr;
  float gate_scale = 1, up_scale = 1, down_scale = 1;
};

// The layer's expert matrices without their data: types and shapes.
struct ExpertShape {
  Weight gate, up;  // [ff, width]
  Weight down;      // [width, ff]
};

// out[row, j] = down_e (silu(gate_e x) * (up_e x)) for e = id[row, j]; weights are applied later.
// Rows are grouped by expert, so each weight is read once a step.
// Shapes: x [max_rows, width]; id [max_rows, top_k]; out [max_rows, top_k, width];
//         blobs [experts].
struct ExpertFfn {
  const int32_t* n_rows = nullptr;
  View<const float> x;
  View<const int32_t> id;
  View<const ExpertBlob> blobs;
  ExpertShape shape;
  View<float> out;
  View<std::byte> scratch;
};

// y = sum over the chosen experts, by ascending expert id, of weight * expert row, and last
// sigm(gate_logit) * shared.
// Shapes: expert [max_rows, top_k, width]; id, weight [max_rows, top_k]; shared [max_rows, width];
//         gate_logit [max_rows, 1]; y [max_rows, width].
struct ExpertCombine {
  const int32_t* n_rows = nullptr;
  View<const float> expert;
  View<const int32_t> id;
  View<const float> weight, shared, gate_logit;
  View<float> y;
};

// y = down (silu(gate x) * (up x)): the shared expert. Shapes: x, y [max_rows, width].
struct SharedFfn {
  const int32_t* n_rows = nullptr;
  View<const float> x;
  Weight gate, up, down;
  View<float> y;
  View<std::byte> scratch;
};

}  // namespace strata::kernels
