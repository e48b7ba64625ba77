#pragma once

#include "strata/kernels/cpu/isa/grid_planes.h"

namespace strata::kernels::cpu {

// The codebooks of strata/quant/codebooks.h in that form.
GridPlanes make_grid_planes();

}  // namespace strata::kernels::cpu
