#pragma once

#include "strata/server/exchange.h"
#include "strata/server/services.h"

namespace strata::server {

// GET /metrics: see Metrics. 200 whatever the state of the engine.
Response metrics(const Services& services);

}  // namespace strata::server
