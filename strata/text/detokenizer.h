#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "strata/text/tokenizer.h"

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

enum class ControlTokens {
  kHide,  // their text is left out
  kShow,
};

// Token ids, one by one, to valid UTF-8 that is never cut inside a character.
class Detokenizer {
 public:
  // The tokenizer outlives it.
  explicit Detokenizer(const Tokenizer& tokenizer, ControlTokens control = ControlTokens::kHide)
      : tokenizer_(tokenizer), control_(control) {}

  // The text that is complete with this token; may be empty.
  // Errors: kInvalidArgument for an id outside the vocabulary.
  std::string append(int32_t id);
  // Resolves an incomplete last character to U+FFFD.
  std::string finish() { return stream_.finish(); }
  std::string_view pending() const { return stream_.pending(); }

 private:
  const Tokenizer& tokenizer_;
  ControlTokens control_;
  Utf8Stream stream_;
};

}  // namespace strata::text
