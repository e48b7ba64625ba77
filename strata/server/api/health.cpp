#include "strata/server/api/health.h"

#include <nlohmann/json.hpp>

#include "strata/server/error_reply.h"
#include "strata/server/json.h"

namespace strata::server {

Response health(const Services& services) {
  using supervise::State;
  const supervise::Status status = services.engine.status();
  const bool answers =
      !services.draining && (status.state == State::kReady || status.state == State::kDegraded);
  const wire::Pulse& pulse = status.pulse;
  std::vector<std::string> reasons;
  for (const std::string& reason : status.reasons)
    reasons.push_back(without_folders(reason, services.config.private_folders));
  const Json engine = {{"state", supervise::name(status.state)},
                       {"running", pulse.n_running},
                       {"waiting", pulse.n_waiting},
                       {"slots", status.limits.n_slots},
                       {"context_length", status.limits.n_context},
                       {"step_ms", pulse.step_ms},
                       {"step_rows", pulse.step_rows},
                       {"wait", pulse.wait},
                       {"steps", pulse.work.steps},
                       {"failed_steps", pulse.work.failed_steps},
                       {"resident_bytes", pulse.resident},
                       {"anonymous_bytes", pulse.anonymous}};
  const Json body = {{"status", services.draining ? "stopping" : supervise::name(status.state)},
                     {"reasons", reasons},
                     {"phase", pulse.phase},
                     {"model", services.config.model_name},
                     {"requests", status.n_requests},
                     {"restarts", status.n_restarts},
                     {"engine", engine}};
  return {answers ? 200 : 503, {{"Content-Type", "application/json"}}, dump(body)};
}

}  // namespace strata::server
