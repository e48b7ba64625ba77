#include "strata/base/error.h"
#include "strata/cli/commands.h"

namespace strata::cli {

bool has_server() { return false; }

int run_serve(const Invocation&) {
  throw Error(ErrorCode::kUnsupported, "this build has no server (STRATA_SERVER=OFF)");
}

}  // namespace strata::cli
