#include "strata/device/gpu/api.h"

#include "strata/base/format.h"

namespace strata::device::gpu {

ErrorCode code_of(Status status) {
  switch (status) {
    case STRATA_GPU(ErrorMemoryAllocation):
      return ErrorCode::kResourceExhausted;
    // After these the context is gone: every later call says the same.
    case STRATA_GPU(ErrorIllegalAddress):
    case STRATA_GPU(ErrorLaunchFailure):
    case STRATA_GPU(ErrorAssert):
#ifdef STRATA_HIP
    case hipErrorLaunchTimeOut:
    case hipErrorECCNotCorrectable:
#else
    case cudaErrorLaunchTimeout:
    case cudaErrorECCUncorrectable:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorDevicesUnavailable:
#endif
      return ErrorCode::kDeviceLost;
    default:
      return ErrorCode::kDevice;
  }
}

Fault fault_of(const char* call, Status status, DeviceId device) {
  // The runtime keeps a failure for its next caller; this one has it now.
  static_cast<void>(STRATA_GPU(GetLastError)());
  return {.code = code_of(status),
          .call = call,
          .api_code = static_cast<int>(status),
          .device = device};
}

void fail(const char* call, Status status, DeviceId device) {
  const Fault fault = fault_of(call, status, device);
  Error error = to_error(fault);
  error.with(format("the runtime says: {}", STRATA_GPU(GetErrorString)(status)));
  throw error;
}

}  // namespace strata::device::gpu
