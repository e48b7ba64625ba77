#include "strata/cli/supervision.h"

#include <algorithm>

namespace strata::cli {

supervise::Settings supervisor_settings(const Settings& settings) {
  supervise::Settings result;
  // The server refuses what is beyond them with words about its queue (429); the supervisor's own
  // limit (503) is there for whoever else submits.
  const auto let_in = static_cast<int>(settings.batch + settings.max_queue);
  result.max_requests = std::max(result.max_requests, let_in);
  return result;
}

}  // namespace strata::cli
