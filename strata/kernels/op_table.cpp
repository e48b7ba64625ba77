#include "strata/kernels/op_table.h"

#include "strata/device/device.h"

namespace strata::kernels {

const OpTable& ops_for(const device::Stream& stream) {
  switch (stream.device().backend()) {
    case device::Backend::kRef:
      return ref_ops();
    case device::Backend::kCpu:
      return cpu_ops();
    case device::Backend::kGpu:
      return gpu_ops();
  }
  return ref_ops();
}

}  // namespace strata::kernels
