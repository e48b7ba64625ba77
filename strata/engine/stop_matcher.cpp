#include "strata/engine/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace strata::engine {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}

std::string StopMatcher::push(std::string_view bytes) {
  if (matched_) return {};
  held_ += bytes;
  // The match that ends first counts: it would have stopped a run that went byte by byte. Of those
  // that end together, the longest.
  size_t begin = std::string::npos, end = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    const size_t stop_end = at + stop.size();
    if (stop_end < end || (stop_end == end && at < begin)) begin = at, end = stop_end;
  }
  if (begin != std::string::npos) {
    matched_ = true;
    stop_ = held_.substr(begin, end - begin);
    return std::exchange(held_, {}).substr(0, begin);
  }
  // The longest end of the text that is the start of a stop string stays.
  size_t keep = 0;
  for (const std::string& stop : stops_) {
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > keep; --n) {
      if (std::string_view(held_).substr(held_.size() - n) == std::string_view(stop).substr(0, n)) {
        keep = n;
      }
    }
  }
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

std::string StopMatcher::finish() { return std::exchange(held_, {}); }

}  // namespace strata::engine
