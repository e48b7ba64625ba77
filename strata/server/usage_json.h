#pragma once

#include <string>

#include "strata/server/json.h"
#include "strata/wire/messages.h"

namespace strata::server {

// {"prompt_tokens","completion_tokens","total_tokens","prompt_tokens_details":{"cached_tokens"}}
Json usage_json(const wire::Usage& usage);
// Milliseconds and tokens a second; ours, beyond the API.
Json timings_json(const wire::Finished& end);

// Seconds since 1970.
int64_t unix_time();

}  // namespace strata::server
