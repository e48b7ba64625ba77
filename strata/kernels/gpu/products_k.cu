#include "strata/base/check.h"
#include "strata/kernels/gpu/products.cuh"

namespace strata::kernels::gpu {

void launch_k(quant::Type type, Packing packing, const ProductArgs& a, NativeStream s) {
  switch (type) {
    case quant::Type::kQ2_K:
      return launch<Q2_K>(packing, a, s);
    case quant::Type::kQ3_K:
      return launch<Q3_K>(packing, a, s);
    case quant::Type::kQ4_K:
      return launch<Q4_K>(packing, a, s);
    case quant::Type::kQ5_K:
      return launch<Q5_K>(packing, a, s);
    case quant::Type::kQ6_K:
      return launch<Q6_K>(packing, a, s);
    default:
      STRATA_CHECK(false);
  }
}

}  // namespace strata::kernels::gpu
