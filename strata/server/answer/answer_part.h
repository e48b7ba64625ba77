#pragma once

#include <string>
#include <vector>

namespace strata::server {

// A piece of an answer as clients see it. Pieces of one kind that follow each other belong
// together; a call is a kCall and the kArguments behind it, which together are one JSON object.
struct AnswerPart {
  enum class Kind { kReasoning, kContent, kCall, kArguments };
  Kind kind = Kind::kContent;
  std::string text;  // kCall: the name of the function
  bool operator==(const AnswerPart&) const = default;
};
using AnswerParts = std::vector<AnswerPart>;

// Joins to the last part where that is of the same kind.
inline void add_part(AnswerParts& parts, AnswerPart::Kind kind, std::string text) {
  if (text.empty()) return;
  if (kind != AnswerPart::Kind::kCall && !parts.empty() && parts.back().kind == kind)
    parts.back().text += text;
  else
    parts.push_back({kind, std::move(text)});
}

}  // namespace strata::server
