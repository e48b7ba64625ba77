#include "strata/text/jinja/string_literals.h"

#include <cstdint>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/code_points.h"
#include "strata/text/jinja/lexer.h"

namespace strata::text {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

void append_checked(std::string& out, uint32_t value, int line) {
  if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
    fail_at(line, format("U+{:04X} in a string is no character", value));
  }
  append_code_point(out, value);
}

// Reads exactly n hexadecimal digits at `at`.
uint32_t read_hex(std::string_view body, size_t& at, size_t n, int line) {
  uint32_t value = 0;
  for (size_t i = 0; i < n; ++i, ++at) {
    const int digit = at < body.size() ? hex_value(body[at]) : -1;
    if (digit < 0) fail_at(line, format("an escape in a string needs {} hexadecimal digits", n));
    value = value << 4 | static_cast<uint32_t>(digit);
  }
  return value;
}

uint32_t read_octal(std::string_view body, size_t& at) {
  uint32_t value = 0;
  for (int i = 0; i < 3 && at < body.size() && body[at] >= '0' && body[at] <= '7'; ++i, ++at) {
    value = value << 3 | static_cast<uint32_t>(body[at] - '0');
  }
  return value;
}

}  // namespace

std::string unescaped(std::string_view body, int line) {
  std::string out;
  out.reserve(body.size());
  for (size_t at = 0; at < body.size();) {
    if (body[at] != '\\') {
      out.push_back(body[at++]);
      continue;
    }
    if (++at == body.size()) fail_at(line, "a string ends with a backslash");
    const char c = body[at++];
    switch (c) {
      case '\n':
        break;
      case '\\':
      case '\'':
      case '"':
        out.push_back(c);
        break;
      case 'a':
        out.push_back('\a');
        break;
      case 'b':
        out.push_back('\b');
        break;
      case 'f':
        out.push_back('\f');
        break;
      case 'n':
        out.push_back('\n');
        break;
      case 'r':
        out.push_back('\r');
        break;
      case 't':
        out.push_back('\t');
        break;
      case 'v':
        out.push_back('\v');
        break;
      case 'x':
        append_checked(out, read_hex(body, at, 2, line), line);
        break;
      case 'u':
        append_checked(out, read_hex(body, at, 4, line), line);
        break;
      case 'U':
        append_checked(out, read_hex(body, at, 8, line), line);
        break;
      case 'N':
        throw Error(ErrorCode::kUnsupported, format("line {}: \\N{{name}} in a string", line));
      default:
        if (c >= '0' && c <= '7') {
          --at;
          append_checked(out, read_octal(body, at), line);
        } else {
          out.push_back('\\');
          out.push_back(c);
        }
    }
  }
  return out;
}

std::string_view clipped(std::string_view text) {
  constexpr size_t kMost = 80;
  if (text.size() <= kMost) return text;
  size_t end = 0;
  for (size_t next = 0; next <= kMost; next += code_point_at(text, next).length) end = next;
  return text.substr(0, end);
}

}  // namespace strata::text
