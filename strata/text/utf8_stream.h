#pragma once

#include <string>
#include <string_view>

namespace strata::text {

// Bytes in any cuts to valid UTF-8: each append returns what is complete now and keeps the start of
// a character (at most 3 bytes) until the rest comes. Bytes that no continuation can repair become
// U+FFFD at once. The concatenation of all results does not depend on the cuts.
class Utf8Stream {
 public:
  std::string append(std::string_view bytes);
  // Resolves a kept start to U+FFFD; the stream is then as new.
  std::string finish();
  // Bytes that wait for the rest of their character.
  std::string_view pending() const { return pending_; }

 private:
  std::string pending_;
};

}  // namespace strata::text
