#pragma once

#include <string>

#include "strata/server/generation.h"
#include "strata/server/services.h"

namespace strata::server {

// POST /v1/completions: text goes to the model as it is, special tokens in it count. The prompt is
// a string, a list of token ids, or a list of one of these. docs/api.md lists the fields.
// Errors: RequestError naming what is at fault.
Generation read_completion(const std::string& body, const std::string& request_id,
                           const Services& services);

}  // namespace strata::server
