#pragma once

#include <string>

#include "strata/server/services.h"

namespace strata::server {

// POST /tokenize: {"content": text, "parse_special": false, "add_special": false} to
// {"tokens": [ids], "count": n}. Answers with a JSON body. Errors: RequestError naming the field.
std::string tokenize(const std::string& body, const Services& services);

// POST /detokenize: {"tokens": [ids]} to {"content": text}; bytes that are not UTF-8 become U+FFFD.
std::string detokenize(const std::string& body, const Services& services);

}  // namespace strata::server
