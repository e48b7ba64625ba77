#pragma once

#include "strata/server/exchange.h"
#include "strata/server/services.h"

namespace strata::server {

// GET /health: {"status","reasons","phase","model","requests","restarts","engine"}; 200 when
// requests are answered (ready, degraded), 503 otherwise (starting, restarting, failed, stopping).
// "engine" is what its last pulse said: state, slots, the present step and what it waits for,
// failures, memory.
Response health(const Services& services);

}  // namespace strata::server
