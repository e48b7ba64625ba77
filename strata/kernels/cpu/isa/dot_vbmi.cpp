#include <immintrin.h>

#include "strata/kernels/cpu/isa/dot_table.h"
#include "strata/kernels/cpu/isa/grid_planes.h"

// Everything but one function has internal linkage: this file is compiled for AVX-512 with VNNI and
// VBMI.
namespace strata::kernels::cpu {
namespace {

// In terms of Vec; the order matters.
// clang-format off
#include "strata/kernels/cpu/isa/dot_rows.inl"
#include "strata/kernels/cpu/isa/dot_vec_avx512.inl"
#include "strata/kernels/cpu/isa/dot_tile.inl"
#include "strata/kernels/cpu/isa/dot_gemm.inl"
#include "strata/kernels/cpu/isa/dot_sink.inl"
#include "strata/kernels/cpu/isa/dot_panel.inl"
#include "strata/kernels/cpu/isa/unpack_layout.inl"
#include "strata/kernels/cpu/isa/unpack_odd_scales.inl"
#include "strata/kernels/cpu/isa/unpack_planes.inl"
#include "strata/kernels/cpu/isa/dot_matmul.inl"
// clang-format on

}  // namespace

void add_dot_vbmi(DotTable& table) {
  table.name = "AVX-512 VBMI";
  add<IQ2_XXS>(table, 16);
  add<IQ2_XS>(table, 17);
  add<IQ3_XXS>(table, 18);
  add<IQ3_S>(table, 21);
  add<IQ2_S>(table, 22);
}

}  // namespace strata::kernels::cpu
