#include "strata/gguf/escape.h"

#include "strata/base/format.h"

namespace strata::gguf {
namespace {

// Bytes of the well-formed UTF-8 character at the start of text; 0 if there is none.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t n = lead >= 0xC2 && lead < 0xE0   ? 2
                   : lead >= 0xE0 && lead < 0xF0 ? 3
                   : lead >= 0xF0 && lead < 0xF5 ? 4
                                                 : 0;
  if (n == 0 || text.size() < n) return 0;
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, above U+10FFFF.
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) >= 0xA0) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) >= 0x90) return 0;
  return n;
}

bool is_control(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return lead < 0x20 || lead == 0x7F;
  // U+0080..U+009F: some terminals obey them.
  return character.size() == 2 && lead == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

void append_escaped(std::string& out, std::string_view bytes) {
  for (const char c : bytes) {
    switch (c) {
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\\':
        out += "\\\\";
        break;
      default:
        out += format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
}

// whole: backslashes and ends of lines stay.
std::string cleaned(std::string_view text, size_t max_bytes, bool whole) {
  std::string out;
  size_t i = 0;
  while (i < text.size()) {
    const size_t n = character_bytes(text.substr(i));
    const std::string_view character = text.substr(i, n == 0 ? 1 : n);
    if (i + character.size() > max_bytes) {
      out += "...";
      break;
    }
    const bool stays = whole && character == "\n";
    if (n == 0 || (is_control(character) && !stays) || (!whole && character == "\\")) {
      append_escaped(out, character);
    } else {
      out += character;
    }
    i += character.size();
  }
  return out;
}

}  // namespace

std::string escaped(std::string_view text, size_t max_bytes) {
  return cleaned(text, max_bytes, false);
}

std::string printable(std::string_view message, size_t max_bytes) {
  return cleaned(message, max_bytes, true);
}

}  // namespace strata::gguf
