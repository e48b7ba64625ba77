#include "strata/kernels/ops/run.h"

#include "strata/base/carver.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/device/device.h"

namespace strata::kernels {

void throw_unsupported(const device::Stream& stream, const char* op) {
  throw Error(ErrorCode::kUnsupported,
              format("op {} of this model's sizes is not there on {}", op, stream.device().name()));
}

void require_scratch(const char* op, Bytes wanted, const View<std::byte>& scratch) {
  const bool aligned = reinterpret_cast<uintptr_t>(scratch.data()) % Carver::kAlign == 0;
  if (wanted <= static_cast<Bytes>(scratch.size()) && (aligned || wanted == 0)) return;
  throw Error(ErrorCode::kInternal, format("op {}: wants {} B of aligned scratch, there are {}", op,
                                           wanted, scratch.size()));
}

}  // namespace strata::kernels
