#include "strata/base/cpu_features.h"
#include "strata/base/error.h"
#include "strata/kernels/cpu/cpu.h"

namespace strata::kernels::cpu {

const RowFns& row_fns() {
  switch (cpu_features().level()) {
    case CpuLevel::kAvx512:
      return row_fns_avx512();
    case CpuLevel::kAvx2:
      return row_fns_avx2();
    case CpuLevel::kBaseline:
      break;
  }
  throw Error(ErrorCode::kUnsupported,
              "this processor lacks AVX2, FMA or F16C, which the CPU kernels need");
}

}  // namespace strata::kernels::cpu
