#include "strata/base/check.h"
#include "strata/kernels/gpu/few.cuh"

namespace strata::kernels::gpu {

void launch_few_blocks32(quant::Type type, const FewArgs& a, NativeStream s) {
  switch (type) {
    case quant::Type::kQ4_0:
      return launch_few<Q4_0>(a, s);
    case quant::Type::kQ4_1:
      return launch_few<Q4_1>(a, s);
    case quant::Type::kQ5_0:
      return launch_few<Q5_0>(a, s);
    case quant::Type::kQ5_1:
      return launch_few<Q5_1>(a, s);
    case quant::Type::kQ8_0:
      return launch_few<Q8_0>(a, s);
    case quant::Type::kIQ4_NL:
      return launch_few<IQ4_NL>(a, s);
    case quant::Type::kQ1_0:
      return launch_few<Q1_0>(a, s);
    case quant::Type::kQ2_0:
      return launch_few<Q2_0>(a, s);
    default:
      STRATA_CHECK(false);
  }
}

}  // namespace strata::kernels::gpu
