#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "strata/base/os/proc.h"

namespace strata::os {

// The control groups that bind this process: its own and all above it, as far as they are mounted.
struct CgroupDirs {
  int version = 0;                // 1 or 2; 0: none found
  std::vector<std::string> dirs;  // below the root, innermost first
};

// controller: "cpu" or "memory". On a machine with both versions the one that has the controller.
CgroupDirs cgroup_dirs(const SystemRoot& root, std::string_view controller);

}  // namespace strata::os
