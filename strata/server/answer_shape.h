#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strata/server/answer/answer_part.h"
#include "strata/server/exchange.h"
#include "strata/wire/messages.h"

namespace strata::server {

// Why an answer ended.
enum class Finish { kStop, kStopString, kLength, kToolCalls };
// As OpenAI's API says it: "stop", "length", "tool_calls".
const char* name(Finish finish);

// A token with its log-probability and the likeliest ones in its place, as bytes.
struct TokenLogprob {
  std::string bytes;
  float logprob = 0;
  std::vector<std::pair<std::string, float>> top;
};
using Logprobs = std::vector<TokenLogprob>;

struct Call {
  std::string id, name, arguments;
};

// One whole answer.
struct Answer {
  AnswerParts parts;  // all of it, in order; neighbours of one kind are one part
  // The same by kind.
  std::string content, reasoning;
  std::vector<Call> calls;
  Logprobs logprobs;  // of each token but the one that ends the answer
  Finish finish = Finish::kStop;
  std::string stop;  // kStopString: which
};

// Of all answers of a request.
struct Totals {
  wire::Usage usage;
  wire::Timings timings;  // of the slowest
  wire::Drafts drafts;    // of all
};

// "call_ID_0_1": of a request, of an answer.
std::string call_id(const std::string& request_id, int choice, size_t index);

// How an endpoint writes answers. One for each request; belongs to the transport's thread.
class AnswerShape {
 public:
  virtual ~AnswerShape() = default;

  // Of a stream: bytes to be sent, which may be none. `choice` counts the answers from 0.
  virtual std::string begin(int32_t) { return ""; }  // tokens of the prompt
  virtual std::string parts(int choice, const AnswerParts& parts, const Logprobs& logprobs) = 0;
  // The end of one answer, and of the stream.
  virtual std::string finished(int choice, const Answer& answer, const Totals& so_far) = 0;
  virtual std::string end(const std::vector<Answer>& answers, const Totals& totals) = 0;
  // An error instead of that; `error` is what the client would have got before the stream.
  virtual std::string failed(const Response& error) = 0;
  // An error that is the whole answer.
  virtual Response refused(Response error) const { return error; }
  // Shows that the stream lives. No client takes it for text.
  virtual std::string filler() const { return ": working\n\n"; }

  // Not of a stream: the body.
  virtual std::string whole(const std::vector<Answer>& answers, const Totals& totals) = 0;
};

}  // namespace strata::server
