#include "strata/text/jinja/lexer.h"

#include <algorithm>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/code_points.h"
#include "strata/text/jinja/string_literals.h"
#include "strata/text/string_search.h"
#include "strata/text/unicode_tables.h"
#include "strata/text/utf8.h"

namespace strata::text {
namespace {

// Names stand in messages.
constexpr size_t kMaxNameBytes = 256;

enum class Tag : uint8_t { kBlock, kOutput, kComment };

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "\r\n" and "\r" become "\n"; the last newline goes.
std::string with_plain_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out.push_back(source[i]);
    } else {
      out.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) text_and_tag();
    push(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  void push(TokenKind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }

  // Moves to `to`, counting lines.
  void advance(size_t to) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(at_),
                                         source_.begin() + static_cast<ptrdiff_t>(to), '\n'));
    at_ = to;
  }

  bool at(size_t where, std::string_view what) const {
    return source_.substr(std::min(where, source_.size()), what.size()) == what;
  }

  size_t skip_spaces(size_t from) const {
    while (from < source_.size()) {
      const CodePoint c = code_point_at(source_, from);
      if (!is_space(c.value)) break;
      from += c.length;
    }
    return from;
  }

  // Text up to the next tag, then that tag.
  void text_and_tag() {
    size_t tag = at_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
        return add_text(source_.size());
      }
      const char next = source_[tag + 1];
      if (next == '%' || next == '{' || next == '#') break;
    }
    const char mark = source_[tag + 1];
    const Tag kind = mark == '%' ? Tag::kBlock : mark == '{' ? Tag::kOutput : Tag::kComment;
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    add_text(text_end(tag, sign, kind != Tag::kOutput));
    advance(tag);
    const size_t inside = tag + (sign == '-' || sign == '+' ? 3 : 2);
    switch (kind) {
      case Tag::kComment:
        return comment(inside);
      case Tag::kOutput:
        return expression_tag(inside, TokenKind::kOutputBegin);
      case Tag::kBlock:
        if (!raw_block(inside)) expression_tag(inside, TokenKind::kBlockBegin);
    }
  }

  void add_text(size_t end) {
    if (end > at_) push(TokenKind::kText, std::string(source_.substr(at_, end - at_)));
    advance(end);
  }

  // Where the text in front of a tag ends, by the tag's sign and lstrip_blocks.
  size_t text_end(size_t tag, char sign, bool lstrip) const {
    const std::string_view text = source_.substr(at_, tag - at_);
    size_t begin = 0;
    size_t end = text.size();
    if (sign == '-') {
      while (end > 0) {
        const CodePoint c = code_point_before(text, end);
        if (!is_space(c.value)) break;
        end -= c.length;
      }
      return at_ + end;
    }
    if (sign == '+' || !lstrip) return tag;
    const size_t newline = text.rfind('\n');
    const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    if (line == 0 && !line_starting_) return tag;
    begin = line;
    size_t stop = text.size();
    trim_spaces(text, begin, stop);
    return begin == stop ? at_ + line : tag;
  }

  // Behind the end of a block or comment tag that starts at `end` with an optional sign:
  // "-" takes the blanks that follow, no sign takes one newline.
  size_t after_tag(size_t end, bool minus, bool plus) const {
    const size_t behind = end + 2;
    if (minus) return skip_spaces(behind);
    if (!plus && at(behind, "\n")) return behind + 1;
    return behind;
  }

  void finish_tag(size_t to) {
    advance(to);
    line_starting_ = to > 0 && source_[to - 1] == '\n';
  }

  void comment(size_t inside) {
    const size_t end = source_.find("#}", inside);
    if (end == std::string_view::npos) fail_at(line_, "a comment does not end");
    const char before = end > inside ? source_[end - 1] : '\0';
    finish_tag(after_tag(end, before == '-', before == '+'));
  }

  // The end of "{% raw %}" or "{% endraw %}" with `word`, or npos if this is another tag.
  size_t match_word_tag(size_t inside, std::string_view word, bool is_end) const {
    size_t i = skip_spaces(inside);
    if (!at(i, word)) return std::string_view::npos;
    i = skip_spaces(i + word.size());
    if (at(i, "-%}")) return skip_spaces(i + 3);
    if (is_end && at(i, "+%}")) return i + 3;
    if (!at(i, "%}")) return std::string_view::npos;
    return is_end && at(i + 2, "\n") ? i + 3 : i + 2;
  }

  bool raw_block(size_t inside) {
    const size_t body = match_word_tag(inside, "raw", false);
    if (body == std::string_view::npos) return false;
    const int begin_line = line_;
    finish_tag(body);
    for (size_t tag = body;; tag += 2) {
      tag = source_.find("{%", tag);
      if (tag == std::string_view::npos) fail_at(begin_line, "a raw block does not end");
      const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
      const size_t end_inside = tag + (sign == '-' || sign == '+' ? 3 : 2);
      const size_t end = match_word_tag(end_inside, "endraw", true);
      if (end == std::string_view::npos) continue;
      add_text(text_end(tag, sign, true));
      finish_tag(end);
      return true;
    }
  }

  void expression_tag(size_t inside, TokenKind begin) {
    push(begin, "");
    advance(inside);
    const bool block = begin == TokenKind::kBlockBegin;
    std::string brackets;
    for (;;) {
      advance(skip_spaces(at_));
      if (at_ >= source_.size()) return;  // the parser says what is missing
      if (brackets.empty() && tag_end(block)) return;
      token(brackets);
    }
  }

  bool tag_end(bool block) {
    const std::string_view close = block ? "%}" : "}}";
    const bool minus = at(at_, "-") && at(at_ + 1, close);
    const bool plus = block && at(at_, "+") && at(at_ + 1, close);
    if (!minus && !plus && !at(at_, close)) return false;
    push(block ? TokenKind::kBlockEnd : TokenKind::kOutputEnd, "");
    const size_t end = at_ + (minus || plus ? 1 : 0);
    finish_tag(after_tag(end, minus, plus || !block));
    return true;
  }

  void token(std::string& brackets) {
    const char c = source_[at_];
    if (is_digit(c)) return number();
    if (c == '"' || c == '\'') return string(c);
    const size_t word = word_end(at_);
    if (word > at_) {
      if (word - at_ > kMaxNameBytes) fail_at(line_, "a name is too long");
      push(TokenKind::kName, std::string(source_.substr(at_, word - at_)));
      return advance(word);
    }
    static constexpr std::string_view kPairs[] = {"//", "**", "==", "!=", ">=", "<="};
    for (const std::string_view pair : kPairs) {
      if (at(at_, pair)) {
        push(TokenKind::kOperator, std::string(pair));
        return advance(at_ + 2);
      }
    }
    if (std::string_view("+-/*%~[](){}><=.:|,;").find(c) == std::string_view::npos) {
      fail_at(line_, format("unexpected character '{}'",
                            source_.substr(at_, code_point_at(source_, at_).length)));
    }
    balance(c, brackets);
    push(TokenKind::kOperator, std::string(1, c));
    advance(at_ + 1);
  }

  void balance(char c, std::string& brackets) const {
    if (c == '(') brackets.push_back(')');
    if (c == '[') brackets.push_back(']');
    if (c == '{') brackets.push_back('}');
    if (c != ')' && c != ']' && c != '}') return;
    if (brackets.empty()) fail_at(line_, format("unexpected '{}'", c));
    if (brackets.back() != c) {
      fail_at(line_, format("unexpected '{}', expected '{}'", c, brackets.back()));
    }
    brackets.pop_back();
  }

  size_t word_end(size_t from) const {
    while (from < source_.size()) {
      const CodePoint c = code_point_at(source_, from);
      if (c.value != '_' && (character_flags(c.value) & (kAlpha | kNumeric)) == 0) break;
      from += c.length;
    }
    return from;
  }

  // Digits with single underscores between them; `from` itself if there is none.
  template <class IsDigit>
  size_t digits_end(size_t from, IsDigit is) const {
    size_t end = from;
    while (end < source_.size()) {
      const bool gap = end > from && source_[end] == '_' && end + 1 < source_.size();
      if (!is(source_[gap ? end + 1 : end])) break;
      end += gap ? 2 : 1;
    }
    return end;
  }

  void number() {
    const auto decimal = [](char c) { return is_digit(c); };
    size_t end = digits_end(at_, decimal);
    TokenKind kind = TokenKind::kInteger;
    // Behind a dot it is an index: x.0.1 is x[0][1].
    if (at_ == 0 || source_[at_ - 1] != '.') {
      const auto fraction = [&](size_t from) {
        return at(from, ".") ? std::max(digits_end(from + 1, decimal), from + 1) : from;
      };
      size_t stop = fraction(end);
      if (stop <= end + 1) stop = end;
      size_t exponent = stop;
      if (at(stop, "e") || at(stop, "E")) {
        const size_t sign = at(stop + 1, "+") || at(stop + 1, "-") ? stop + 2 : stop + 1;
        const size_t digits = digits_end(sign, decimal);
        if (digits > sign) exponent = digits;
      }
      if (exponent > end) {
        kind = TokenKind::kFloat;
        end = exponent;
      }
    }
    if (kind == TokenKind::kInteger) end = integer_end(end);
    std::string text(source_.substr(at_, end - at_));
    std::erase(text, '_');
    push(kind, std::move(text));
    advance(end);
  }

  // Integers with a base, and "007", which is 00 and then 7.
  size_t integer_end(size_t decimal_end) const {
    if (source_[at_] != '0') return decimal_end;
    const char mark = at_ + 1 < source_.size() ? static_cast<char>(source_[at_ + 1] | 0x20) : '\0';
    const auto with_base = [&](auto is) {
      // One underscore may stand behind the letter.
      const size_t from = at_ + 2 + (at(at_ + 2, "_") ? 1 : 0);
      const size_t end = digits_end(from, is);
      return end > from ? end : at_ + 1;
    };
    if (mark == 'x') {
      return with_base(
          [](char c) { return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); });
    }
    if (mark == 'o') return with_base([](char c) { return c >= '0' && c <= '7'; });
    if (mark == 'b') return with_base([](char c) { return c == '0' || c == '1'; });
    return digits_end(at_, [](char c) { return c == '0'; });
  }

  void string(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail_at(line_, "a string does not end");
    push(TokenKind::kString, unescaped(source_.substr(at_ + 1, end - at_ - 1), line_));
    advance(end + 1);
  }

  std::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  // The last tag ended with a newline, or nothing was read yet.
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> read_tokens(std::string_view source, const TemplateLimits& limits) {
  if (source.size() > limits.max_source_bytes) {
    throw Error(ErrorCode::kInvalidArgument, format("the template has {} bytes, more than {}",
                                                    source.size(), limits.max_source_bytes));
  }
  const size_t valid = valid_utf8_prefix(source);
  if (valid != source.size()) {
    const auto lines =
        std::count(source.begin(), source.begin() + static_cast<ptrdiff_t>(valid), '\n');
    fail_at(static_cast<int>(lines) + 1, "the template is not UTF-8");
  }
  const std::string plain = with_plain_newlines(source);
  return Lexer(plain).run();
}

void fail_at(int line, std::string message) {
  throw Error(ErrorCode::kInvalidArgument, format("line {}: {}", line, message));
}

}  // namespace strata::text
