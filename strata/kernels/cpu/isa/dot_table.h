#pragma once

#include <cstddef>
#include <cstdint>

// The seam between the code compiled for one instruction set and the rest: plain types only, so
// that no inline function is compiled twice. See strata/kernels/cpu/matmul.h for the meaning.
namespace strata::kernels::cpu {

struct GridPlanes;  // isa/grid_planes.h

// The codebooks, as little-endian words: one word an entry.
struct DotGrids {
  const uint64_t* iq2xxs;
  const uint64_t* iq2xs;
  const uint64_t* iq2s;
  const uint32_t* iq3xxs;
  const uint32_t* iq3s;
  const GridPlanes* planes;  // the same for look-ups in registers
};

// Weight rows [first_row, end_row) times n_rows rows of activations.
struct DotArgs {
  const uint8_t* w;  // row 0
  size_t w_row_bytes;
  bool tiles;  // quant/tiles.h; else rows as a file has them
  int first_row, end_row;
  int cols;

  // Row i of the activations is row x_index[i] of these, or i where x_index is null.
  const int32_t* x_index;
  int n_rows;
  const int8_t* q;      // [rows, cols]; crossed where DotTable::crossed says so
  const float* scale;   // [rows, cols / block]
  const int16_t* sums;  // [rows, cols / 16]
  const float* x;       // [rows, x_stride], for the float types; else null
  int64_t x_stride;

  // Row i of the results is row y_index[i], or i; element o of it belongs to weight row o.
  float* y;
  int64_t y_stride;
  const int32_t* y_index;

  const DotGrids* grids;
};

using DotFn = void (*)(const DotArgs&);

struct DotTable {
  static constexpr int kTypes = 64;  // by the id that GGUF stores

  const char* name;
  // One row of n values; n is a multiple of the block. crossed may be null.
  void (*quantize)(const float* x, int64_t n, int block, int8_t* q, int8_t* crossed, float* scale,
                   int16_t* sums);
  DotFn matmul[kTypes];  // null: not here
  bool crossed[kTypes];  // whether matmul takes activations crossed (QuantRows of matmul.h)
};

extern const DotTable kDotAvx2;
extern const DotTable kDotAvx512;  // F, BW, DQ, VL, VNNI

// Replaces the types with codebooks in a copy of kDotAvx512 by kernels with byte permutes.
void add_dot_vbmi(DotTable& table);

}  // namespace strata::kernels::cpu
