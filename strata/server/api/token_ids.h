#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strata/server/frontend.h"
#include "strata/server/json.h"

namespace strata::server {

// A list of ids, each of which the vocabulary has. Errors: RequestError naming the member.
std::vector<int32_t> read_token_ids(const Json& list, const std::string& path,
                                    const Frontend& frontend);

}  // namespace strata::server
