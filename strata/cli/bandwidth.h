#pragma once

#include "strata/base/ids.h"
#include "strata/base/thread_pool.h"

namespace strata::cli {

struct Bandwidth {
  double bytes_per_s = 0;  // 0: there was too little memory to tell
  Bytes read = 0;          // in one run
};

// How fast the threads of the pool read memory of their own, with the widest loads that the kernels
// of this process use: the best of several runs over `wanted` bytes, or over a quarter of what
// memory is available if that is less. Caches are too small to matter from kLeastBytes on; below it
// nothing is measured. The memory is given back.
inline constexpr Bytes kLeastBytes = Bytes{256} << 20;
Bandwidth measure_bandwidth(ThreadPool& pool, Bytes wanted = Bytes{1} << 30);

// The exclusive or of all 64-bit words; what the runs above do. n is a multiple of 512 bytes, the
// address of 64.
uint64_t read_through(const std::byte* from, Bytes n);

}  // namespace strata::cli
