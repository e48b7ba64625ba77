#pragma once

#include <string>

#include "strata/server/generation.h"
#include "strata/server/services.h"

namespace strata::server {

// POST /v1/chat/completions. docs/api.md lists its fields.
// Errors: RequestError naming what is at fault; Error of the template.
Generation read_chat(const std::string& body, const std::string& request_id,
                     const Services& services);

}  // namespace strata::server
