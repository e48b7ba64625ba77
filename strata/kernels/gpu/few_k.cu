#include "strata/base/check.h"
#include "strata/kernels/gpu/few.cuh"

namespace strata::kernels::gpu {

void launch_few_k(quant::Type type, const FewArgs& a, NativeStream s) {
  switch (type) {
    case quant::Type::kQ2_K:
      return launch_few<Q2_K>(a, s);
    case quant::Type::kQ3_K:
      return launch_few<Q3_K>(a, s);
    case quant::Type::kQ4_K:
      return launch_few<Q4_K>(a, s);
    case quant::Type::kQ5_K:
      return launch_few<Q5_K>(a, s);
    case quant::Type::kQ6_K:
      return launch_few<Q6_K>(a, s);
    default:
      STRATA_CHECK(false);
  }
}

}  // namespace strata::kernels::gpu
