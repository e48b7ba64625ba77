#pragma once

#include <vector>

namespace strata::os {

// The part of the machine that this process may run on.
struct Topology {
  int n_cores = 0;       // physical; 0: unknown
  int n_threads = 0;     // hardware threads
  int n_numa_nodes = 0;  // with memory or CPUs of ours
  // Hardware threads of ours by node, of the nodes that have any; numbers ascend.
  std::vector<std::vector<int>> node_cpus;
};

// Never throws: what cannot be found out is 0. description: for tests, a machine in hwloc's
// synthetic notation, taken as wholly ours.
Topology read_topology(const char* description = nullptr);

// For each of n threads the CPUs it should stay on: all of one node, nodes in order, as many
// threads each as its share of the CPUs. Empty where there is one node or none is known: then the
// system places threads better than a mask would.
std::vector<std::vector<int>> thread_cpus(const Topology& topology, int n_threads);

}  // namespace strata::os
