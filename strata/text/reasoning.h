#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace strata::text {

// Where a tail of `text` begins that `tag` may grow out of; the size of `text` if there is none.
size_t partial_tag(std::string_view text, std::string_view tag);

// Parts the text of an answer into reasoning (a <think> block at its beginning) and content. The
// tags and the white space next to them belong to neither. The concatenation of all results does
// not depend on how the text is cut; what may still be part of a tag, or white space that a tag may
// swallow, is held back and no more than that.
class ReasoningSplit {
 public:
  struct Part {
    std::string reasoning;
    std::string content;
  };

  // `open`: the prompt has opened the block already.
  explicit ReasoningSplit(bool open) : state_(open ? State::kBeforeReasoning : State::kStart) {}

  Part append(std::string_view text);
  // What was held back. A block that never closes is reasoning to its end.
  Part finish();

 private:
  enum class State { kStart, kBeforeReasoning, kReasoning, kBeforeContent, kContent };
  void advance(Part& part, bool at_end);
  bool start(bool at_end);
  bool skip_space(State next, bool at_end);
  bool reason(Part& part, bool at_end);

  State state_;
  std::string held_;
};

}  // namespace strata::text
