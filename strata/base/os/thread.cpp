#include "strata/base/os/thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
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

void ask_for_turns_of(std::chrono::nanoseconds length) {
  // As linux/sched/types.h has it; Linux 6.12 and later read `runtime` of an ordinary thread.
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes{};
  static_assert(sizeof(attributes) == 48);
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.size = sizeof(attributes);
  attributes.runtime = static_cast<uint64_t>(length.count());
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace strata::os
