#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strata::engine {

// Watches the bytes of an answer for stop strings. Text that may still become one is held back, and
// no more than that; of a match nothing is let go.
class StopMatcher {
 public:
  // stops: not empty strings.
  explicit StopMatcher(std::vector<std::string> stops);

  // The bytes that are safe to send now. After a match nothing more is.
  std::string push(std::string_view bytes);
  // At the end of an answer that did not match: what was held back.
  std::string finish();

  bool matched() const { return matched_; }
  // Which it was.
  const std::string& stop() const { return stop_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::string stop_;
  bool matched_ = false;
};

}  // namespace strata::engine
