#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/server/exchange.h"
#include "strata/server/sampling_fields.h"
#include "strata/server/services.h"
#include "strata/text/reasoning.h"
#include "strata/wire/messages.h"

namespace strata::server {

// How an endpoint writes an answer: JSON texts. Belongs to the transport's thread.
class AnswerShape {
 public:
  struct Whole {
    std::string content;
    std::string reasoning;
    std::string_view finish_reason;  // "stop" or "length"
    wire::Finished end;
  };

  virtual ~AnswerShape() = default;
  // Of a stream: what comes before the first piece ("" for nothing), each piece, and the end.
  virtual std::string opening() const = 0;
  virtual std::string piece(const text::ReasoningSplit::Part& part) const = 0;
  virtual std::string closing(std::string_view finish_reason) const = 0;
  // The extra last event with the usage and no choices.
  virtual std::string usage(const wire::Finished& end) const = 0;
  // Not of a stream.
  virtual std::string whole(const Whole& answer) const = 0;
};

// A request that has been read and checked.
struct Generation {
  wire::Submit submit;
  std::unique_ptr<AnswerShape> shape;
  bool stream = false;
  bool include_usage = false;
  bool split_reasoning = false;
  bool in_reasoning = false;  // the prompt ends inside an open block
};

// What both endpoints make of a prompt and the fields they share. Errors: those of answer_tokens.
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

// Sends it to the engine and its answer to the client. On the transport's thread; returns at once.
// Streamed and whole answers are made of the same pieces, so they cannot differ. The client's
// going, or the server's end, cancels the request.
void start_generation(const std::shared_ptr<Exchange>& exchange, const Services& services,
                      Generation generation);

}  // namespace strata::server
