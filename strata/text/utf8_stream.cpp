#include "strata/text/utf8_stream.h"

#include "strata/text/utf8.h"

namespace strata::text {

std::string Utf8Stream::append(std::string_view bytes) {
  pending_.append(bytes);
  std::string_view rest = pending_;
  std::string out;
  out.reserve(rest.size());
  while (!rest.empty()) {
    const size_t valid = valid_utf8_prefix(rest);
    out.append(rest.substr(0, valid));
    rest.remove_prefix(valid);
    if (rest.empty()) break;
    const Utf8Step step = utf8_step(rest);
    if (step.status == Utf8Status::kIncomplete) break;
    out.append(kReplacementCharacter);
    rest.remove_prefix(step.length);
  }
  pending_.erase(0, pending_.size() - rest.size());
  return out;
}

std::string Utf8Stream::finish() {
  if (pending_.empty()) return {};
  pending_.clear();
  return std::string(kReplacementCharacter);
}

}  // namespace strata::text
