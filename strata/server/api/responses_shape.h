#pragma once

#include <memory>
#include <string>

#include "strata/server/answer_shape.h"
#include "strata/server/json.h"

namespace strata::server {

// Answers as items: reasoning, message and function_call. `echo`: members of the request that the
// answer repeats.
std::unique_ptr<AnswerShape> responses_shape(const std::string& request_id, std::string model,
                                             const Json& echo);

}  // namespace strata::server
