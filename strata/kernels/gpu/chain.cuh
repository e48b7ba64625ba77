#pragma once

#include <utility>

#include "strata/device/gpu/api.h"
#include "strata/kernels/gpu/lanes.cuh"

// Kernels that begin while the one before them ends (programmatic dependent launch, cards of
// capability 9.0 on). Such a kernel calls let_next_begin and wait_for_before in every thread. What
// it does between the two may only touch what no kernel of the step writes: weights. What others
// write is read by plain loads, as a read-only one may be moved before the wait.
namespace strata::kernels::gpu {

STRATA_FN void let_next_begin() {
#if !defined(STRATA_HIP) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
STRATA_FN void wait_for_before() {
#if !defined(STRATA_HIP) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Of a kernel with nothing to do ahead.
STRATA_FN void chained() {
  let_next_begin();
  wait_for_before();
}

inline int device_attribute(STRATA_GPU(DeviceAttr) attribute) {
  int device = 0, value = 0;
  static_cast<void>(STRATA_GPU(GetDevice)(&device));
  static_cast<void>(STRATA_GPU(DeviceGetAttribute)(&value, attribute, device));
  return value;
}

// Shared memory that a block of threads may have when it is asked for.
inline int most_shared() {
#ifdef STRATA_HIP
  return device_attribute(hipDeviceAttributeMaxSharedMemoryPerBlock);
#else
  return device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
#endif
}

// Queues a kernel that calls wait_for_before. A launch that fails leaves its error to the stream.
template <class... Params, class... Args>
void launch_chained(void (*kernel)(Params...), dim3 grid, int threads, size_t shared,
                    device::gpu::NativeStream s, Args&&... args) {
  constexpr size_t kUnasked = 48 * 1024;
#ifdef STRATA_HIP
  kernel<<<grid, threads, shared, s>>>(std::forward<Args>(args)...);
#else
  if (shared > kUnasked) {
    static_cast<void>(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                           cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(shared)));
  }
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared;
  config.stream = s;
  config.attrs = &attribute;
  config.numAttrs = device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9 ? 1 : 0;
  static_cast<void>(cudaLaunchKernelEx(&config, kernel, Params(std::forward<Args>(args))...));
#endif
}

// 16 bytes to shared memory, a copy that goes on beside what the thread does.
STRATA_FN void fetch16(void* shared, const void* from) {
#if !defined(STRATA_HIP) && __CUDA_ARCH__ >= 800
  const auto place = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(place), "l"(from)
               : "memory");
#else
  *static_cast<uint4*>(shared) = *static_cast<const uint4*>(from);
#endif
}
// Copies to shared memory that go on beside what the threads do: all threads of the block, 16 bytes
// each. Both addresses and the size are multiples of 16.
STRATA_FN void fetch(void* shared, const void* from, int bytes) {
  for (int at = 16 * static_cast<int>(threadIdx.x); at < bytes;
       at += 16 * static_cast<int>(blockDim.x)) {
    fetch16(static_cast<char*>(shared) + at, static_cast<const char*>(from) + at);
  }
}
// What this thread asks for from here on is another group. Groups are there in order: all but the
// last kOpen ones.
STRATA_FN void close_group() {
#if !defined(STRATA_HIP) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int kOpen>
STRATA_FN void fetched_but() {
#if !defined(STRATA_HIP) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
#endif
}
// All that this thread has asked for is there.
STRATA_FN void fetched() {
#if !defined(STRATA_HIP) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

}  // namespace strata::kernels::gpu
