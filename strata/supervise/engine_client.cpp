#include "strata/supervise/engine_client.h"

#include "strata/base/check.h"

namespace strata::supervise {

std::string_view name(State state) {
  switch (state) {
    case State::kStarting:
      return "starting";
    case State::kReady:
      return "ready";
    case State::kDegraded:
      return "degraded";
    case State::kRestarting:
      return "restarting";
    case State::kFailed:
      return "failed";
  }
  STRATA_CHECK(false);
}

}  // namespace strata::supervise
