#include "strata/base/check.h"
#include "strata/kernels/gpu/products.cuh"

namespace strata::kernels::gpu {

void launch_grids(quant::Type type, Packing packing, const ProductArgs& a, NativeStream s) {
  switch (type) {
    case quant::Type::kIQ1_S:
      return launch<IQ1_S>(packing, a, s);
    case quant::Type::kIQ1_M:
      return launch<IQ1_M>(packing, a, s);
    case quant::Type::kIQ2_XXS:
      return launch<IQ2_XXS>(packing, a, s);
    case quant::Type::kIQ2_XS:
      return launch<IQ2_XS>(packing, a, s);
    case quant::Type::kIQ2_S:
      return launch<IQ2_S>(packing, a, s);
    case quant::Type::kIQ3_XXS:
      return launch<IQ3_XXS>(packing, a, s);
    case quant::Type::kIQ3_S:
      return launch<IQ3_S>(packing, a, s);
    case quant::Type::kIQ4_XS:
      return launch<IQ4_XS>(packing, a, s);
    default:
      STRATA_CHECK(false);
  }
}

}  // namespace strata::kernels::gpu
