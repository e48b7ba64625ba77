#pragma once

#include <string>

#include "strata/base/error.h"
#include "strata/server/exchange.h"
#include "strata/server/request_error.h"

namespace strata::server {

// HTTP status of an error of this code.
int http_status(ErrorCode code);

// {"error":{"message","type","param","code"}}, as OpenAI's clients read it.
std::string error_body(int status, const std::string& message, const std::string& param,
                       const std::string& api_code);
std::string error_body(const Error& error);

Response error_response(int status, const std::string& message, const std::string& api_code);
// 500 hides nothing but says it is our fault and names the request.
Response error_response(const Error& error, const std::string& request_id);

}  // namespace strata::server
