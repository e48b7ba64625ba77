#include "strata/base/os/topology.h"

#include <hwloc.h>

#include <memory>
#include <utility>

namespace strata::os {
namespace {

struct Destroy {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
struct Free {
  void operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }
};

int count(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_const_bitmap_t ours) {
  int n = 0;
  for (hwloc_obj_t each = hwloc_get_next_obj_by_type(topology, type, nullptr); each != nullptr;
       each = hwloc_get_next_obj_by_type(topology, type, each)) {
    if (hwloc_bitmap_intersects(each->cpuset, ours) != 0) ++n;
  }
  return n;
}

std::vector<std::vector<int>> cpus_by_node(hwloc_topology_t topology, hwloc_const_bitmap_t ours) {
  std::vector<std::vector<int>> nodes;
  for (hwloc_obj_t node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, nullptr);
       node != nullptr; node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) {
    std::vector<int> cpus;
    for (int cpu = hwloc_bitmap_first(node->cpuset); cpu >= 0;
         cpu = hwloc_bitmap_next(node->cpuset, cpu)) {
      if (hwloc_bitmap_isset(ours, static_cast<unsigned>(cpu)) != 0) cpus.push_back(cpu);
    }
    if (!cpus.empty()) nodes.push_back(std::move(cpus));
  }
  return nodes;
}

}  // namespace

Topology read_topology(const char* description) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return {};
  const std::unique_ptr<hwloc_topology, Destroy> topology(raw);
  if (description != nullptr && hwloc_topology_set_synthetic(raw, description) != 0) return {};
  if (hwloc_topology_load(raw) != 0) return {};

  const std::unique_ptr<hwloc_bitmap_s, Free> ours(
      hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(raw)));
  if (ours == nullptr) return {};
  if (description == nullptr) {
    const std::unique_ptr<hwloc_bitmap_s, Free> bound(hwloc_bitmap_alloc());
    if (bound != nullptr && hwloc_get_cpubind(raw, bound.get(), HWLOC_CPUBIND_PROCESS) == 0) {
      hwloc_bitmap_and(ours.get(), ours.get(), bound.get());
    }
  }
  return {.n_cores = count(raw, HWLOC_OBJ_CORE, ours.get()),
          .n_threads = count(raw, HWLOC_OBJ_PU, ours.get()),
          .n_numa_nodes = count(raw, HWLOC_OBJ_NUMANODE, ours.get()),
          .node_cpus = cpus_by_node(raw, ours.get())};
}

std::vector<std::vector<int>> thread_cpus(const Topology& topology, int n_threads) {
  const auto& nodes = topology.node_cpus;
  if (nodes.size() < 2) return {};
  double n_cpus = 0;
  for (const auto& cpus : nodes) n_cpus += static_cast<double>(cpus.size());
  std::vector<std::vector<int>> of_thread;
  size_t node = 0;
  double end = static_cast<double>(nodes[0].size());
  for (int i = 0; i < n_threads; ++i) {
    const double at = (i + 0.5) * n_cpus / n_threads;  // of thread i on the line of all CPUs
    while (at > end && node + 1 < nodes.size()) end += static_cast<double>(nodes[++node].size());
    of_thread.push_back(nodes[node]);
  }
  return of_thread;
}

}  // namespace strata::os
