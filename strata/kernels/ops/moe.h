#pragma once

#include "strata/kernels/ops/op.h"
#include "strata/kernels/ops/rows.h"

namespace strata::kernels {

// Softmax over all experts, the top_k largest by falling probability (of equals the lower index
// first), renormalised to sum 1.
// Shapes: logits [max_rows, experts], overwritten; id, weight [max_rows, top_k].
struct RouterTopk {
  static constexpr const char* kName = "router_topk";
  const int32_t* n_rows = nullptr;
  View<float> logits;
  int top_k = 0;
  View<int32_t> id;
  View<float> weight;
};
void check(const RouterTopk& args);

// The layer's expert matrices without their data: types and shapes.
struct ExpertShape {
  Weight gate, up;  // [ff, width]
  Weight down;      // [width, ff]
  // One factor an expert on the product of each matrix (NVFP4 files), or null. [experts]
  const float* gate_scale = nullptr;
  const float* up_scale = nullptr;
  const float* down_scale = nullptr;
};

// out[row, j] = down_e (silu(gate_e x) * (up_e x)) for e = id[row, j]; weights are applied later.
// Rows are grouped by expert, so each weight is read once a step.
// Shapes: x [max_rows, width]; id [max_rows, top_k]; out [max_rows, top_k, width];
//         parts [experts, 3]: where the gate, up and down matrix of each expert lie, in memory that
//         the op reads as it runs; all null if the expert is not here. Rows of out for an expert
//         that is not here stay as they are: who has it computes them.
// x_row [max_rows], may be left out: the row of x that each row of id is for, which then are as
// many as one likes; all rows of x take part, and there is no shared expert. shared: the expert
// that every row takes, computed in the same loops where it is given; what SharedFfn says. y
// [max_rows, width].
struct ExpertFfn {
  static constexpr const char* kName = "expert_ffn";
  struct Shared {
    Weight gate, up, down;
    View<float> y;
  };
  const int32_t* n_rows = nullptr;
  View<const float> x;
  View<const int32_t> id;
  View<const int32_t> x_row;
  View<const std::byte* const> parts;
  ExpertShape shape;
  Shared shared;
  View<float> out;
  View<std::byte> scratch;
};
void check(const ExpertFfn& args);

// y = sum over the chosen experts, by ascending expert id, of weight * expert row, and last
// sigm(gate_logit) * shared.
// Shapes: expert [max_rows, top_k, width]; id, weight [max_rows, top_k]; shared [max_rows, width];
//         gate_logit [max_rows, 1]; y [max_rows, width].
struct ExpertCombine {
  static constexpr const char* kName = "expert_combine";
  const int32_t* n_rows = nullptr;
  View<const float> expert;
  View<const int32_t> id;
  View<const float> weight, shared, gate_logit;
  View<float> y;
};
void check(const ExpertCombine& args);

// y = down (silu(gate x) * (up x)): the shared expert. Shapes: x, y [max_rows, width].
struct SharedFfn {
  static constexpr const char* kName = "shared_ffn";
  const int32_t* n_rows = nullptr;
  View<const float> x;
  Weight gate, up, down;
  View<float> y;
  View<std::byte> scratch;
};
void check(const SharedFfn& args);

}  // namespace strata::kernels
