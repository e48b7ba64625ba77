#pragma once

#include "strata/server/exchange.h"
#include "strata/server/services.h"

namespace strata::server {

// GET /health: {"status","reasons","phase","model","requests","restarts"}; 200 when requests are
// answered (ready, degraded), 503 otherwise (starting, restarting, failed, stopping).
Response health(const Services& services);

}  // namespace strata::server
