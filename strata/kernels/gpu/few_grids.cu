#include "strata/base/check.h"
#include "strata/kernels/gpu/few.cuh"

namespace strata::kernels::gpu {

void launch_few_grids(quant::Type type, const FewArgs& a, NativeStream s) {
  switch (type) {
    case quant::Type::kIQ1_S:
      return launch_few<IQ1_S>(a, s);
    case quant::Type::kIQ2_XXS:
      return launch_few<IQ2_XXS>(a, s);
    case quant::Type::kIQ2_XS:
      return launch_few<IQ2_XS>(a, s);
    case quant::Type::kIQ2_S:
      return launch_few<IQ2_S>(a, s);
    case quant::Type::kIQ3_XXS:
      return launch_few<IQ3_XXS>(a, s);
    case quant::Type::kIQ3_S:
      return launch_few<IQ3_S>(a, s);
    case quant::Type::kIQ4_XS:
      return launch_few<IQ4_XS>(a, s);
    default:
      STRATA_CHECK(false);
  }
}

}  // namespace strata::kernels::gpu
