#pragma once

#include <memory>
#include <string>

#include "strata/server/answer_shape.h"

namespace strata::server {

// Answers as Anthropic's API has them: blocks of thinking, text and tool_use.
std::unique_ptr<AnswerShape> messages_shape(const std::string& request_id, std::string model);

}  // namespace strata::server
