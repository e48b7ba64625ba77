#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace strata::text {

enum class Utf8Status {
  kValid,       // one whole character
  kInvalid,     // bytes that no continuation can repair
  kIncomplete,  // the text ends inside a character that may still become valid
};

// One step over `text`: what stands at its start and how many bytes of it.
// kInvalid and kIncomplete cover the longest start of a well-formed character ("maximal subpart"),
// so that a decoder which writes one U+FFFD a step writes what other decoders write.
// `text` is not empty. Overlong forms, surrogates and anything above U+10FFFF are invalid.
// Source: The Unicode Standard 15.0, table 3-7 and section 3.9.
struct Utf8Step {
  Utf8Status status;
  uint8_t length;  // bytes, 1..4
};
Utf8Step utf8_step(std::string_view text);

// Bytes of the longest prefix that is valid UTF-8.
size_t valid_utf8_prefix(std::string_view text);

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace strata::text
