#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "strata/base/ids.h"
#include "strata/kernels/cpu/isa/dot_table.h"
#include "strata/kernels/ops/rows.h"
#include "strata/quant/types.h"

// Matrix products on the CPU: AVX2 or AVX-512 (VNNI), chosen at run time. Every result has the bits
// of the canonical form (strata/quant/canonical.h), whatever the instruction set, the number of
// rows in a call or the split of the weight rows among threads.
namespace strata::kernels::cpu {

// Activations for quantised weights: int8 codes with one scale a block of 32 or 256 values.
// Shapes: q [rows, cols]; scale [rows, cols / block]; sums [rows, cols / 16]: each the sum of 16
//         codes, which serves the mins and the offsets of the weights.
// crossed [rows, cols], for weights of which takes_crossed, is q with each 16 columns as a matrix
// of 4 x 4 that is transposed: column 4j + p at place 4p + j. Such weights come apart into every
// fourth column; sums of integers have no order.
struct QuantRows {
  int8_t* q = nullptr;
  int8_t* crossed = nullptr;  // or none
  float* scale = nullptr;
  int16_t* sums = nullptr;
  int n_rows = 0;
  int cols = 0;
  int block = 0;
};

// Bytes that n_rows need as scratch.
Bytes quant_rows_bytes(int n_rows, int cols, int block);

// Lays the arrays but crossed into scratch of at least quant_rows_bytes, 64-byte aligned.
QuantRows place_quant_rows(int n_rows, int cols, int block, std::byte* scratch);

// Whether a table here reads QuantRows::crossed for weights of this type.
bool takes_crossed(quant::Type type);

// Fills rows [first_row, end_row) of out from the same rows of x; threads may share out.
// Shapes: x [rows, x_stride], x_stride >= out.cols.
void quantize_rows(const float* x, int64_t x_stride, int first_row, int end_row,
                   const QuantRows& out);

// Weight rows as a GGUF file holds them, at any address, or in tiles of 16 (quant/tiles.h).
struct WeightRows {
  const std::byte* data = nullptr;  // row 0
  quant::Type type{};
  size_t row_bytes = 0;
  int cols = 0;
  Packing packing = Packing::kGguf;
};

// Where results go: y[row[i]][o] of activation row i and weight row o; without row, y[i][o].
struct OutRows {
  float* y = nullptr;
  int64_t stride = 0;
  const int32_t* row = nullptr;
};

// y = W x for the weight rows [first_row, end_row) and the activation rows named by index, or all
// rows of x where index is empty. Callers split weight rows among threads, best at multiples of 16;
// in tiles first_row must be one.
// x.block must be quant::activation_block(w.type), x.crossed must be there if
// takes_crossed(w.type). matmul_float takes F32, F16 and BF16 weights, matmul every quantised type.
// Never allocates; about 64 KiB of stack.
void matmul(const WeightRows& w, int first_row, int end_row, const QuantRows& x,
            std::span<const int32_t> index, const OutRows& out);

struct FloatRows {
  const float* x = nullptr;
  int64_t stride = 0;
  int n_rows = 0;
};
void matmul_float(const WeightRows& w, int first_row, int end_row, const FloatRows& x,
                  std::span<const int32_t> index, const OutRows& out);

// The tables that this CPU can run, best first; at least one function in each. Empty without AVX2:
// then the canonical scalar form computes.
std::span<const DotTable* const> dot_tables();

// Selects the table that the functions above use; null is the scalar form. For tests and
// comparisons: not while another thread is in a call.
void use_dot_table(const DotTable* table);
const DotTable* dot_table();

}  // namespace strata::kernels::cpu
