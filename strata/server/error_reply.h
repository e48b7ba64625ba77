#pragma once

#include <span>
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

Response error_response(int status, const std::string& message, const std::string& api_code);
// 500 says it is our fault and names the request. From 500 on, files are named without these
// folders (Config::private_folders): what is wrong here concerns the client, not where.
Response error_response(const Error& error, const std::string& request_id,
                        std::span<const std::string> private_folders = {});

// Each "FOLDER/" is taken out of the text.
std::string without_folders(std::string text, std::span<const std::string> folders);

}  // namespace strata::server
