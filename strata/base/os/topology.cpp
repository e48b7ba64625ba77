#include "strata/base/os/topology.h"

#include <hwloc.h>

#include <memory>

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
          .n_numa_nodes = count(raw, HWLOC_OBJ_NUMANODE, ours.get())};
}

}  // namespace strata::os
