#pragma once

// One set of names for the runtime of CUDA and of HIP, whose calls differ in their first letters.
// STRATA_GPU(Malloc) is cudaMalloc or hipMalloc; what they name differently stands below.

#ifdef STRATA_HIP
#include <hip/hip_runtime_api.h>
#define STRATA_GPU(name) hip##name
#define STRATA_GPU_TEXT "hip"
#else
#include <cuda_runtime_api.h>
#define STRATA_GPU(name) cuda##name
#define STRATA_GPU_TEXT "cuda"
#endif

#include "strata/device/fault.h"

namespace strata::device::gpu {

using Status = STRATA_GPU(Error_t);
using NativeStream = STRATA_GPU(Stream_t);
using NativeEvent = STRATA_GPU(Event_t);
#ifdef STRATA_HIP
using Properties = hipDeviceProp_t;
#else
using Properties = cudaDeviceProp;
#endif

// "cuda" or "hip": the word of --device.
inline constexpr const char* kApi = STRATA_GPU_TEXT;

inline Status host_allocate(void** at, size_t bytes, bool mapped) {
#ifdef STRATA_HIP
  return hipHostMalloc(at, bytes, hipHostMallocPortable | (mapped ? hipHostMallocMapped : 0));
#else
  return cudaHostAlloc(at, bytes, cudaHostAllocPortable | (mapped ? cudaHostAllocMapped : 0));
#endif
}
inline Status host_free(void* at) {
#ifdef STRATA_HIP
  return hipHostFree(at);
#else
  return cudaFreeHost(at);
#endif
}

// What a status means to us: kDeviceLost where the runtime takes no more work after it,
// kResourceExhausted for memory, else kDevice.
ErrorCode code_of(Status status);

// The call and what it said, as a value and as an exception with the runtime's own words.
Fault fault_of(const char* call, Status status, DeviceId device);
[[noreturn]] void fail(const char* call, Status status, DeviceId device);
inline void require(const char* call, Status status, DeviceId device) {
  if (status != STRATA_GPU(Success)) fail(call, status, device);
}

}  // namespace strata::device::gpu

// A call that must succeed: STRATA_GPU_CALL(id, EventRecord, event, stream).
#define STRATA_GPU_CALL(where, name, ...) \
  ::strata::device::gpu::require(STRATA_GPU_TEXT #name, STRATA_GPU(name)(__VA_ARGS__), where)
