#pragma once

#include <array>

#include "strata/kernels/ops/op.h"
#include "strata/kernels/ops/rows.h"

namespace strata::kernels {

// y_i = W_i x for up to kMax matrices that share the input, which is quantised once for each block
// size their types ask for (docs/numerics.md).
// Shapes: x [max_rows, cols]; y_i [max_rows, W_i.rows]; n_rows [1] rows that count.
//         x and y do not overlap.
struct MatMul {
  static constexpr const char* kName = "matmul";
  static constexpr int kMax = 6;
  struct Out {
    Weight w;
    View<float> y;
  };
  const int32_t* n_rows = nullptr;
  View<const float> x;
  std::array<Out, kMax> out{};
  int n_out = 0;
  View<std::byte> scratch;
};
void check(const MatMul& args);

// out[row, copy, :] = table[id[row]], `copies` times.
// Shapes: ids [max_rows]; out [max_rows, copies, cols]. An id outside the table is a caller's bug.
struct Embed {
  static constexpr const char* kName = "embed";
  const int32_t* n_rows = nullptr;
  View<const int32_t> id;
  Weight table;
  View<float> out;
  int copies = 1;
};
void check(const Embed& args);

// out[row] = table rows side by side: out[row, h, :] = table[index[row, h]].
// Shapes: index [max_rows, heads] int64; out [max_rows, heads * cols].
struct Gather {
  static constexpr const char* kName = "gather";
  const int32_t* n_rows = nullptr;
  View<const int64_t> index;
  Weight table;
  View<float> out;
};
void check(const Gather& args);

// Every byte 0.
struct Zero {
  static constexpr const char* kName = "zero";
  View<float> out;
};
void check(const Zero& args);

// out[i, :] = x[index[i], :] for i < n_rows[0].
struct CopyRows {
  static constexpr const char* kName = "copy_rows";
  const int32_t* n_rows = nullptr;
  View<const int32_t> index;  // [max_out]
  View<const float> x;        // [rows, width]
  View<float> out;            // [max_out, width]
};
void check(const CopyRows& args);

// out[index[i], :] = x[i, :] for i < n_rows[0]; no index stands twice, other rows of out stay.
struct ScatterRows {
  static constexpr const char* kName = "scatter_rows";
  const int32_t* n_rows = nullptr;
  View<const int32_t> index;  // [max_in]
  View<const float> x;        // [max_in, width]
  View<float> out;            // [rows, width]
};
void check(const ScatterRows& args);

}  // namespace strata::kernels
