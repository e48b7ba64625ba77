#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strata/text/jinja/limits.h"

namespace strata::text {

enum class TokenKind : uint8_t {
  kText,  // outside tags, whitespace control already applied
  kOutputBegin,
  kOutputEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,  // unescaped
  kInteger,
  kFloat,
  kOperator,  // "(", "==", "//", ...
  kEnd,
};

struct Token {
  TokenKind kind;
  int line;  // from 1
  std::string text;
};

// Cuts a template into tokens; the last one is kEnd. Comments are dropped and raw blocks are text.
// Whitespace: trim_blocks and lstrip_blocks are on, one newline at the end of the source is
// dropped, "\r\n" and "\r" count as "\n".
// Errors: kInvalidArgument, naming the line, for tags that do not end, unbalanced brackets, unknown
// characters, strings that hold half a surrogate pair, a source that is not UTF-8 or is larger
// than the limit.
std::vector<Token> read_tokens(std::string_view source, const TemplateLimits& limits);

// "line 12: " in front of the message of every parse error.
[[noreturn]] void fail_at(int line, std::string message);

}  // namespace strata::text
