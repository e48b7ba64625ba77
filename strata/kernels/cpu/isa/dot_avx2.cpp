#include <immintrin.h>

#include "strata/kernels/cpu/isa/dot_table.h"

// Everything but the table has internal linkage: this file is compiled for AVX2, FMA and F16C.
namespace strata::kernels::cpu {
namespace {

// In terms of Vec; the order matters.
// clang-format off
#include "strata/kernels/cpu/isa/dot_rows.inl"
#include "strata/kernels/cpu/isa/dot_vec_avx2.inl"
#include "strata/kernels/cpu/isa/dot_tile.inl"
#include "strata/kernels/cpu/isa/dot_gemm.inl"
#include "strata/kernels/cpu/isa/dot_sink.inl"
#include "strata/kernels/cpu/isa/dot_panel.inl"
#include "strata/kernels/cpu/isa/unpack_layout.inl"
#include "strata/kernels/cpu/isa/unpack_blocks32.inl"
#include "strata/kernels/cpu/isa/unpack_k.inl"
#include "strata/kernels/cpu/isa/unpack_odd_scales.inl"
#include "strata/kernels/cpu/isa/unpack_grid.inl"
#include "strata/kernels/cpu/isa/dot_matmul.inl"
#include "strata/kernels/cpu/isa/dot_float.inl"
#include "strata/kernels/cpu/isa/quantize_rows.inl"
#include "strata/kernels/cpu/isa/dot_list.inl"
// clang-format on

}  // namespace

constinit const DotTable kDotAvx2 = make_table("AVX2");

}  // namespace strata::kernels::cpu
