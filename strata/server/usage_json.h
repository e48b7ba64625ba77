#pragma once

#include <string>

#include "strata/server/json.h"
#include "strata/wire/messages.h"

namespace strata::server {

// What every answer ends with, as members of `body`:
// "usage": {"prompt_tokens","completion_tokens","total_tokens",
//           "prompt_tokens_details":{"cached_tokens"}},
// "timings": milliseconds and tokens a second; ours, beyond the API.
void add_end(Json& body, const wire::Finished& end);

// Seconds since 1970.
int64_t unix_time();

}  // namespace strata::server
