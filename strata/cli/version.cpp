#include "strata/cli/version.h"

#include "strata/base/cpu_features.h"
#include "strata/base/format.h"
#include "strata/cli/commands.h"

namespace strata::cli {

std::string version_text() {
  return format("strata {} (commit {})\nprocessor: {}\nbackends: host, sim\nserver: {}\n",
                build_version(), build_commit(), detect_cpu_features().text(),
                has_server() ? "yes" : "not built");
}

}  // namespace strata::cli
