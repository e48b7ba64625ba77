#pragma once

#include <string>

#include "strata/server/answer_shape.h"
#include "strata/server/json.h"

namespace strata::server {

// What every answer ends with, as members of `body`:
// "usage": {"prompt_tokens","completion_tokens","total_tokens",
//           "prompt_tokens_details":{"cached_tokens"},
//           "completion_tokens_details":{"reasoning_tokens"}},
// "timings": milliseconds and tokens a second; ours, beyond the API.
void add_end(Json& body, const Totals& totals);

// Seconds since 1970.
int64_t unix_time();

}  // namespace strata::server
