#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "strata/base/function_ref.h"
#include "strata/base/os/proc.h"

namespace strata::os {

// How many CPUs this process may keep busy.
struct CpuBudget {
  int n_cpus = 1;      // max(1, floor(min(n_allowed, quota)))
  int n_allowed = 1;   // in the affinity mask, which a cpuset narrows
  double quota = 0;    // CPUs' worth of time that the control groups grant; 0: no limit
  std::string reason;  // the numbers above and where they come from, for the log
};

// Fills `bytes` bytes of a mask (CPU i is bit i % 8 of byte i / 8) and returns how many it wrote,
// or minus errno: -EINVAL if the mask is too small.
using AffinityCall = FunctionRef<long(size_t bytes, unsigned char* mask)>;

CpuBudget cpu_budget(const SystemRoot& root, AffinityCall affinity);
CpuBudget cpu_budget();  // of this process

// The numbers of the CPUs in the mask; empty if the call fails or the mask is.
std::vector<int> allowed_cpus(AffinityCall affinity);

// How many threads to compute with. Asked for: that many, with a warning above the budget.
// Otherwise one a physical core within the budget: a core's two threads share its vector units.
struct ThreadChoice {
  int n_threads = 1;
  std::string reason;
  std::string warning;  // empty: none
};
ThreadChoice choose_threads(std::optional<int> asked, const CpuBudget& budget, int n_cores);

}  // namespace strata::os
