#include "strata/text/utf8.h"

#include <algorithm>

namespace strata::text {
namespace {

// What a leading byte asks for. The second byte has its own bounds: they rule out overlong forms,
// surrogates and values above U+10FFFF.
struct Lead {
  uint8_t length;  // 0: no character starts with this byte
  uint8_t second_min = 0x80;
  uint8_t second_max = 0xBF;
};

Lead lead(uint8_t byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

}  // namespace

Utf8Step utf8_step(std::string_view text) {
  const Lead first = lead(static_cast<uint8_t>(text[0]));
  if (first.length == 0) return {Utf8Status::kInvalid, 1};
  const size_t available = std::min<size_t>(first.length, text.size());
  for (size_t i = 1; i < available; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const uint8_t min = i == 1 ? first.second_min : 0x80;
    const uint8_t max = i == 1 ? first.second_max : 0xBF;
    if (byte < min || byte > max) return {Utf8Status::kInvalid, static_cast<uint8_t>(i)};
  }
  const bool whole = available == first.length;
  return {whole ? Utf8Status::kValid : Utf8Status::kIncomplete, static_cast<uint8_t>(available)};
}

size_t valid_utf8_prefix(std::string_view text) {
  size_t pos = 0;
  while (pos < text.size()) {
    const Utf8Step step = utf8_step(text.substr(pos));
    if (step.status != Utf8Status::kValid) break;
    pos += step.length;
  }
  return pos;
}

}  // namespace strata::text
