#include "strata/server/answer/answer_parser.h"

#include <algorithm>
#include <utility>

#include "strata/base/text.h"

namespace strata::server {

AnswerParser::AnswerParser(const AnswerFormat& format)
    : format_(format), reasoning_(format.in_reasoning) {}

AnswerParts AnswerParser::append(std::string_view text) {
  AnswerParts out;
  if (format_.calls == text::CallFormat::kNone) {
    give(text, out);
    return out;
  }
  held_.append(text);
  advance(out, false);
  return out;
}

AnswerParts AnswerParser::finish() {
  AnswerParts out;
  if (format_.calls != text::CallFormat::kNone) advance(out, true);
  if (!behind_call_) deliver(std::exchange(space_, ""), out);
  if (format_.split_reasoning) give_part(reasoning_.finish(), out);
  return out;
}

void AnswerParser::advance(AnswerParts& out, bool at_end) {
  do {
    if (call_ == nullptr) continue;
    if (!call_->advance(held_, at_end, out)) return;
    call_ = nullptr;
    behind_call_ = true;
    space_.clear();
  } while (find_call_in(out, at_end));
}

// Gives the text up to the next call. False: there is none, or it does not show yet.
bool AnswerParser::find_call_in(AnswerParts& out, bool at_end) {
  for (size_t from = 0;;) {
    const size_t tag = held_.find(kCallOpen, from);
    if (tag == std::string::npos) {
      const size_t end =
          at_end ? held_.size() : std::max(from, text::partial_tag(held_, kCallOpen));
      give(std::string_view(held_).substr(0, end), out);
      held_.erase(0, end);
      return false;
    }
    std::string behind = held_.substr(tag + kCallOpen.size());
    AnswerParts call;
    const Found found = find_call(format_.calls, *format_.tools, behind, at_end, call, call_);
    if (found == Found::kNo) {
      from = tag + kCallOpen.size();
      continue;
    }
    give(std::string_view(held_).substr(0, tag), out);
    if (found == Found::kMaybe) {
      held_.erase(0, tag);
      return false;
    }
    for (AnswerPart& part : call) out.push_back(std::move(part));
    held_ = std::move(behind);
    return true;
  }
}

void AnswerParser::give(std::string_view text, AnswerParts& out) {
  std::string piece = std::exchange(space_, "");
  piece.append(text);
  if (format_.calls != text::CallFormat::kNone) {
    const size_t last = piece.find_last_not_of(kWhiteSpace);
    const size_t end = last == std::string::npos ? 0 : last + 1;
    space_ = piece.substr(end);
    piece.resize(end);
    if (piece.empty()) return;
    if (std::exchange(behind_call_, false)) piece.erase(0, leading_space(piece));
  }
  deliver(std::move(piece), out);
}

void AnswerParser::deliver(std::string piece, AnswerParts& out) {
  if (format_.split_reasoning)
    give_part(reasoning_.append(piece), out);
  else
    add_part(out, AnswerPart::Kind::kContent, std::move(piece));
}

void AnswerParser::give_part(const text::ReasoningSplit::Part& part, AnswerParts& out) {
  add_part(out, AnswerPart::Kind::kReasoning, part.reasoning);
  add_part(out, AnswerPart::Kind::kContent, part.content);
}

}  // namespace strata::server
