#pragma once

#include <string>
#include <string_view>

#include "strata/memory/machine.h"

namespace strata::cli {

// A machine described in JSON, as docs/howto/plan.md shows: sizes in MiB, rates in GB/s.
//   {"name": "...", "ram_mib": 65536, "ram_gbps": 60, "storage_gbps": 5, "peer_access": false,
//    "pinning": {"mapped": true, "pageable_registration": true},
//    "cards": [{"name": "card0", "vram_mib": 12227, "used_by_others_mib": 600, "display": true,
//               "link_gbps": 26, "vram_gbps": 672}]}
// Also: ram_used_by_others_mib, limit_mib of pinning, and of a card os_budget_mib, graph_node_kib,
// launch_us, copy_us, faults (a list of rules in words). Rates may be absent or nonsense: unknown.
// Errors: kInvalidArgument naming the key that is missing, unknown or of the wrong kind.
memory::Machine parse_machine(std::string_view json);

// Its cards as a list of simulated devices (device/registry.h); "host" if there are none.
std::string sim_devices(const memory::Machine& machine);

// The same from a file. Errors also: kNotFound, kIo.
memory::Machine read_machine(const std::string& path);

}  // namespace strata::cli
