#pragma once

namespace strata::os {

// The part of the machine that this process may run on.
struct Topology {
  int n_cores = 0;       // physical; 0: unknown
  int n_threads = 0;     // hardware threads
  int n_numa_nodes = 0;  // with memory or CPUs of ours
};

// Never throws: what cannot be found out is 0. description: for tests, a machine in hwloc's
// synthetic notation, taken as wholly ours.
Topology read_topology(const char* description = nullptr);

}  // namespace strata::os
