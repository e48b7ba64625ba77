#pragma once

#include <atomic>
#include <cstdint>

#include "strata/server/config.h"
#include "strata/server/frontend.h"
#include "strata/server/metrics.h"
#include "strata/server/running_table.h"
#include "strata/server/workers.h"
#include "strata/supervise/engine_client.h"

namespace strata::server {

// What endpoints work with. Outlives every request.
struct Services {
  const Config& config;
  const Frontend& frontend;
  supervise::EngineClient& engine;
  Workers& workers;
  Metrics& metrics;
  RunningTable& running;
  const std::atomic<bool>& draining;  // no new requests
  int64_t started_unix = 0;           // seconds, as "created" of the model
};

}  // namespace strata::server
