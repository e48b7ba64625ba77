#pragma once

#include <string>

#include "strata/server/exchange.h"
#include "strata/server/generation.h"
#include "strata/server/services.h"

namespace strata::server {

// POST /v1/messages: Anthropic's API. docs/api.md lists its fields.
// Errors: RequestError naming what is at fault.
Generation read_message(const std::string& body, const std::string& request_id,
                        const Services& services);

// POST /v1/messages/count_tokens: {"input_tokens"}, as the same request would be billed.
std::string count_tokens(const std::string& body, const Services& services);

// An error as Anthropic's clients read it: {"type":"error","error":{"type","message"}}.
Response anthropic_error(Response error, const std::string& request_id);

}  // namespace strata::server
