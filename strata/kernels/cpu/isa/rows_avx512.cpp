#include <immintrin.h>

#include <cstdint>

#include "strata/kernels/cpu/isa/row_fns.h"

namespace strata::kernels::cpu {
namespace {
#include "strata/kernels/canonical_math.inl"
#include "strata/kernels/cpu/isa/rows_vec.inl"
#include "strata/kernels/cpu/isa/rows.inl"
}  // namespace

const RowFns& row_fns_avx512() { return kRowFns; }

}  // namespace strata::kernels::cpu
