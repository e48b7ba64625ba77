#pragma once

#include <string>

#include "strata/server/generation.h"
#include "strata/server/services.h"

namespace strata::server {

// POST /v1/responses: OpenAI's API of that name, without state: what an answer refers to is in the
// request. docs/api.md lists its fields. Errors: RequestError naming what is at fault.
Generation read_response(const std::string& body, const std::string& request_id,
                         const Services& services);

}  // namespace strata::server
