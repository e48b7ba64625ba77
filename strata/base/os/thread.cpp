#include "strata/base/os/thread.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace strata::os {

void set_thread_name(const char* name) {
  char cut[16];
  std::snprintf(cut, sizeof(cut), "%s", name);
  pthread_setname_np(pthread_self(), cut);
}

void run_on(std::span<const int> cpus) {
  if (cpus.empty() || *std::min_element(cpus.begin(), cpus.end()) < 0) return;
  // The mask is a bit string in words; cpu_set_t ends at 1024.
  constexpr size_t kBits = 8 * sizeof(unsigned long);
  const auto last = static_cast<size_t>(*std::max_element(cpus.begin(), cpus.end()));
  std::vector<unsigned long> mask(last / kBits + 1);
  for (const int cpu : cpus) {
    mask[static_cast<size_t>(cpu) / kBits] |= 1UL << static_cast<size_t>(cpu) % kBits;
  }
  syscall(SYS_sched_setaffinity, 0, mask.size() * sizeof(unsigned long), mask.data());
}

}  // namespace strata::os
