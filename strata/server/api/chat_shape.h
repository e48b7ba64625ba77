#pragma once

#include <memory>
#include <string>

#include "strata/server/answer_shape.h"

namespace strata::server {

struct OpenAiStyle {
  std::string request_id;
  std::string model;
  bool include_usage = false;  // of a stream
  bool logprobs = false;
};

// "chat.completion" and its chunks, and "text_completion".
std::unique_ptr<AnswerShape> chat_shape(OpenAiStyle style);
std::unique_ptr<AnswerShape> completion_shape(OpenAiStyle style);

}  // namespace strata::server
