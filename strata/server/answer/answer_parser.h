#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "strata/server/answer/answer_part.h"
#include "strata/server/answer/call_parser.h"
#include "strata/server/answer/tools.h"
#include "strata/text/reasoning.h"

namespace strata::server {

// How the text of an answer is to be read.
struct AnswerFormat {
  bool split_reasoning = false;
  bool in_reasoning = false;  // the prompt ends inside an open block
  text::CallFormat calls = text::CallFormat::kNone;
  // Of the calls; owners: the request and each of its answers.
  std::shared_ptr<const Tools> tools;
};

// Parts the text of an answer into reasoning, content and calls. What comes out, joined, does not
// depend on how the text is cut. Calls are found wherever they stand, also inside reasoning; the
// white space around them belongs to nothing. What looks like a call and is none (another name,
// another form) stays text. Held back is only what may still become something else.
class AnswerParser {
 public:
  explicit AnswerParser(const AnswerFormat& format);

  // `text` is UTF-8, cut between characters.
  AnswerParts append(std::string_view text);
  AnswerParts finish();

 private:
  void advance(AnswerParts& out, bool at_end);
  bool find_call_in(AnswerParts& out, bool at_end);
  void give(std::string_view text, AnswerParts& out);
  void deliver(std::string piece, AnswerParts& out);
  void give_part(const text::ReasoningSplit::Part& part, AnswerParts& out);

  AnswerFormat format_;
  text::ReasoningSplit reasoning_;
  std::string held_;
  std::string space_;         // white space that may come before a call
  bool behind_call_ = false;  // only white space since
  std::unique_ptr<CallParser> call_;
};

}  // namespace strata::server
