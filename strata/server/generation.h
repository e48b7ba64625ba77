#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strata/server/answer/answer_parser.h"
#include "strata/server/answer_shape.h"
#include "strata/server/exchange.h"
#include "strata/server/sampling_fields.h"
#include "strata/server/services.h"
#include "strata/wire/messages.h"

namespace strata::server {

// A request that has been read and checked.
struct Generation {
  wire::Submit submit;
  int n = 1;  // answers; each but the first has a seed of its own, made of that of `submit`
  std::string grammar_path;  // the field that an error of submit.grammar concerns
  AnswerFormat format;
  std::unique_ptr<AnswerShape> shape;
  bool stream = false;
};

// What all endpoints make of a prompt and the fields they share. Errors: those of answer_tokens.
Generation make_generation(std::vector<int32_t> prompt, GenerationFields&& fields,
                           std::unique_ptr<AnswerShape> shape, const Services& services);

// Room for an answer behind `n_prompt` tokens (or `at_least` as many): `asked`, or all there is.
// Errors (RequestError): kInvalidArgument, context_length_exceeded, with the numbers;
// kResourceExhausted as long as no engine has said how large its context is.
int32_t answer_tokens(int64_t n_prompt, std::optional<int32_t> asked,
                      const supervise::Status& status, bool at_least = false);

// Before a prompt of `n_bytes` is made tokens, which takes long for a long one: refuses what cannot
// fit even if all its tokens are the longest there are. Errors: those of answer_tokens.
void refuse_too_long(size_t n_bytes, std::optional<int32_t> asked, const Services& services);

// Sends it to the engine and its answers to the client. On the transport's thread; returns at once.
// Streamed and whole answers are made of the same pieces, so they cannot differ. The client's
// going, or the server's end, cancels the request.
void start_generation(const std::shared_ptr<Exchange>& exchange, const Services& services,
                      Generation generation);

}  // namespace strata::server
