#include "strata/text/reasoning.h"

#include <algorithm>

#include "strata/base/text.h"

namespace strata::text {
namespace {

constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";

}  // namespace

size_t partial_tag(std::string_view text, std::string_view tag) {
  for (size_t n = std::min(text.size(), tag.size() - 1); n > 0; --n)
    if (text.ends_with(tag.substr(0, n))) return text.size() - n;
  return text.size();
}

ReasoningSplit::Part ReasoningSplit::append(std::string_view text) {
  held_.append(text);
  Part part;
  advance(part, false);
  return part;
}

ReasoningSplit::Part ReasoningSplit::finish() {
  Part part;
  advance(part, true);
  return part;
}

void ReasoningSplit::advance(Part& part, bool at_end) {
  bool moved = true;
  while (moved) {
    switch (state_) {
      case State::kStart:
        moved = start(at_end);
        break;
      case State::kBeforeReasoning:
        moved = skip_space(State::kReasoning, at_end);
        break;
      case State::kReasoning:
        moved = reason(part, at_end);
        break;
      case State::kBeforeContent:
        moved = skip_space(State::kContent, at_end);
        break;
      case State::kContent:
        part.content += held_;
        held_.clear();
        moved = false;
        break;
    }
  }
}

// An answer may open the block itself, behind white space.
bool ReasoningSplit::start(bool at_end) {
  const size_t begin = std::min(held_.find_first_not_of(kWhiteSpace), held_.size());
  const std::string_view rest = std::string_view(held_).substr(begin);
  if (rest.starts_with(kOpen)) {
    held_.erase(0, begin + kOpen.size());
    state_ = State::kBeforeReasoning;
    return true;
  }
  if (!at_end && kOpen.starts_with(rest)) return false;
  state_ = State::kContent;
  return true;
}

bool ReasoningSplit::skip_space(State next, bool at_end) {
  held_.erase(0, std::min(held_.find_first_not_of(kWhiteSpace), held_.size()));
  if (held_.empty() && !at_end) return false;
  state_ = next;
  return !held_.empty();
}

bool ReasoningSplit::reason(Part& part, bool at_end) {
  const size_t close = held_.find(kClose);
  const bool closed = close != std::string::npos;
  size_t end = closed ? close : at_end ? held_.size() : partial_tag(held_, kClose);
  // White space before the tag is not reasoning; without a tag it may still turn out to be that.
  if (closed || !at_end) {
    const size_t last = std::string_view(held_).substr(0, end).find_last_not_of(kWhiteSpace);
    end = last == std::string_view::npos ? 0 : last + 1;
  }
  part.reasoning.append(held_, 0, end);
  held_.erase(0, closed ? close + kClose.size() : end);
  if (closed) state_ = State::kBeforeContent;
  return closed;
}

}  // namespace strata::text
