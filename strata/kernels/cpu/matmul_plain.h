#pragma once

#include "strata/kernels/cpu/isa/dot_table.h"
#include "strata/quant/types.h"

namespace strata::kernels::cpu {

// The products of dot_table.h without vectors, for types or machines that have no kernel:
// quant/canonical.h over the arrays of DotArgs.
void multiply_plainly(const quant::TypeTraits& t, const DotArgs& a);

}  // namespace strata::kernels::cpu
