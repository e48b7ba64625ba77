#include "strata/base/check.h"
#include "strata/kernels/gpu/products.cuh"

namespace strata::kernels::gpu {

void launch_blocks32(quant::Type type, Packing packing, const ProductArgs& a, NativeStream s) {
  switch (type) {
    case quant::Type::kQ4_0:
      return launch<Q4_0>(packing, a, s);
    case quant::Type::kQ4_1:
      return launch<Q4_1>(packing, a, s);
    case quant::Type::kQ5_0:
      return launch<Q5_0>(packing, a, s);
    case quant::Type::kQ5_1:
      return launch<Q5_1>(packing, a, s);
    case quant::Type::kQ8_0:
      return launch<Q8_0>(packing, a, s);
    case quant::Type::kIQ4_NL:
      return launch<IQ4_NL>(packing, a, s);
    case quant::Type::kMXFP4:
      return launch<MXFP4>(packing, a, s);
    case quant::Type::kNVFP4:
      return launch<NVFP4>(packing, a, s);
    case quant::Type::kQ1_0:
      return launch<Q1_0>(packing, a, s);
    case quant::Type::kQ2_0:
      return launch<Q2_0>(packing, a, s);
    default:
      STRATA_CHECK(false);
  }
}

}  // namespace strata::kernels::gpu
