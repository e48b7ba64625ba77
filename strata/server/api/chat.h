#pragma once

#include <string>

#include "strata/server/api/chat_request.h"
#include "strata/server/fields.h"
#include "strata/server/generation.h"
#include "strata/server/services.h"

namespace strata::server {

// The fields of a chat. Errors: RequestError naming what is at fault.
ChatRequest read_chat_request(const Fields& body, const Services& services);

// POST /v1/chat/completions. docs/api.md lists its fields.
// Errors: RequestError naming what is at fault; Error of the template.
Generation read_chat(const std::string& body, const std::string& request_id,
                     const Services& services);

}  // namespace strata::server
