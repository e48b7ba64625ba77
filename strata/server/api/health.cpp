#include "strata/server/api/health.h"

#include <nlohmann/json.hpp>

#include "strata/server/json.h"

namespace strata::server {

Response health(const Services& services) {
  using supervise::State;
  const supervise::Status status = services.engine.status();
  const bool answers =
      !services.draining && (status.state == State::kReady || status.state == State::kDegraded);
  const Json body = {{"status", services.draining ? "stopping" : supervise::name(status.state)},
                     {"reasons", status.reasons},
                     {"phase", status.pulse.phase},
                     {"model", services.config.model_name},
                     {"requests", status.n_requests},
                     {"restarts", status.n_restarts}};
  return {answers ? 200 : 503, {{"Content-Type", "application/json"}}, dump(body)};
}

}  // namespace strata::server
