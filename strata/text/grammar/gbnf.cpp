#include "strata/text/grammar/gbnf.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/code_points.h"
#include "strata/text/grammar/digits.h"
#include "strata/text/utf8.h"

namespace strata::text {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-' || c == '_';
}

class GbnfParser {
 public:
  GbnfParser(std::string_view text, const GrammarLimits& limits) : text_(text), grammar_(limits) {}

  Grammar parse() {
    const size_t valid = valid_utf8_prefix(text_);
    if (valid != text_.size()) fail_at(valid, "this is not UTF-8");
    if (text_.find('\0') != std::string_view::npos) {
      fail_at(text_.find('\0'), "a zero byte stands here");
    }
    skip(true);
    while (at_ < text_.size()) rule();
    check_rules();
    return std::move(grammar_);
  }

 private:
  [[noreturn]] void fail_at(size_t at, const std::string& what,
                            ErrorCode code = ErrorCode::kInvalidArgument) const {
    const std::string_view before = text_.substr(0, at);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    throw Error(code, format("grammar line {} column {}: {}", line, at - start + 1, what));
  }
  [[noreturn]] void fail(const std::string& what) const { fail_at(at_, what); }

  // The character here, or zero at the end: the text holds no zero.
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  // Blanks and comments; line ends too if the expression may go on behind them.
  void skip(bool over_lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
      } else if (c == ' ' || c == '\t' || (over_lines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  int line() {
    counted_lines_ +=
        static_cast<int>(std::count(text_.begin() + counted_to_, text_.begin() + at_, '\n'));
    counted_to_ = static_cast<std::ptrdiff_t>(at_);
    return counted_lines_;
  }

  std::string_view name() {
    const size_t start = at_;
    while (is_name_character(peek())) ++at_;
    return text_.substr(start, at_ - start);
  }

  RuleId rule_named(std::string_view name) {
    const auto found = rules_.find(std::string(name));
    if (found != rules_.end()) return found->second;
    const RuleId id = grammar_.add_rule(std::string(name));
    rules_.emplace(name, id);
    first_use_.push_back(at_);
    return id;
  }

  void rule() {
    const size_t start = at_;
    const int start_line = line();
    const std::string_view rule_name = name();
    if (rule_name.empty()) fail("a rule begins with its name");
    skip(false);
    if (text_.substr(at_, 3) != "::=") fail(format("expected ::= behind {}", rule_name));
    at_ += 3;
    const RuleId id = rule_named(rule_name);
    if (grammar_.rule_line(id) > 0) {
      fail_at(start,
              format("rule {} is defined already on line {}", rule_name, grammar_.rule_line(id)));
    }
    grammar_.set_line(id, start_line);
    skip(true);
    const GrammarNodeId body = alternatives(0);
    if (at_ < text_.size() && peek() != '\n' && peek() != '\r') {
      fail(format("expected a part of rule {} or the end of the line", rule_name));
    }
    grammar_.define(id, body);
    skip(true);
  }

  // A line that begins with | goes on with the rule above.
  bool another_alternative(bool inside) {
    const size_t start = at_;
    skip(true);
    if (peek() == '|') {
      ++at_;
      skip(true);
      return true;
    }
    if (!inside) at_ = start;
    return false;
  }

  GrammarNodeId alternatives(int depth) {
    if (depth > grammar_.limits().max_depth) {
      fail_at(at_, format("parentheses deeper than {}", grammar_.limits().max_depth),
              ErrorCode::kUnsupported);
    }
    std::vector<GrammarNodeId> parts;
    do {
      parts.push_back(sequence(depth));
    } while (another_alternative(depth > 0));
    return grammar_.alternatives(parts);
  }

  GrammarNodeId sequence(int depth) {
    std::vector<GrammarNodeId> parts;
    while (true) {
      const char c = peek();
      GrammarNodeId part;
      if (c == '"') {
        part = literal();
      } else if (c == '[') {
        part = character_class();
      } else if (c == '.') {
        ++at_;
        part = grammar_.one_of({{0, kLastCodePoint}});
      } else if (c == '(') {
        part = group(depth);
      } else if (is_name_character(c)) {
        part = grammar_.reference(rule_named(name()));
      } else if (c == '<' || c == '!') {
        fail_at(at_, "references to tokens are not supported; write the text of the token",
                ErrorCode::kUnsupported);
      } else {
        break;
      }
      skip(depth > 0);
      parts.push_back(repeated(part, depth));
    }
    return grammar_.sequence(parts);
  }

  GrammarNodeId group(int depth) {
    const size_t start = at_;
    ++at_;
    skip(true);
    const GrammarNodeId inner = alternatives(depth + 1);
    if (peek() != ')') fail_at(start, "this parenthesis is not closed");
    ++at_;
    return inner;
  }

  GrammarNodeId repeated(GrammarNodeId part, int depth) {
    while (true) {
      const char c = peek();
      if (c == '*') {
        part = grammar_.repeat(part, 0, kUnbounded);
        ++at_;
      } else if (c == '+') {
        part = grammar_.repeat(part, 1, kUnbounded);
        ++at_;
      } else if (c == '?') {
        part = grammar_.optional(part);
        ++at_;
      } else if (c == '{') {
        part = counted(part);
      } else {
        return part;
      }
      skip(depth > 0);
    }
  }

  GrammarNodeId counted(GrammarNodeId part) {
    const size_t start = at_;
    ++at_;
    skip(false);
    const int min = number();
    int max = min;
    skip(false);
    if (peek() == ',') {
      ++at_;
      skip(false);
      max = peek() == '}' ? kUnbounded : number();
      skip(false);
    }
    if (peek() != '}') fail_at(start, "expected {m}, {m,} or {m,n}");
    if (max != kUnbounded && max < min) fail_at(start, "the second number is below the first");
    ++at_;
    return grammar_.repeat(part, min, max);
  }

  int number() {
    if (!is_digit(peek())) fail("expected a number");
    int value = 0;
    for (; is_digit(peek()); ++at_) {
      value = value * 10 + (peek() - '0');
      if (value > grammar_.limits().max_repeat) {
        fail_at(at_, format("a repetition above {} times", grammar_.limits().max_repeat),
                ErrorCode::kUnsupported);
      }
    }
    return value;
  }

  GrammarNodeId literal() {
    const size_t start = at_;
    ++at_;
    std::string bytes;
    while (peek() != '"') {
      if (at_ >= text_.size()) fail_at(start, "this quotation mark is not closed");
      append_utf8(bytes, character());
    }
    ++at_;
    return grammar_.literal(bytes);
  }

  GrammarNodeId character_class() {
    const size_t start = at_;
    ++at_;
    const bool negated = peek() == '^';
    if (negated) ++at_;
    CodePointRanges ranges;
    while (peek() != ']') {
      if (at_ >= text_.size()) fail_at(start, "this bracket is not closed");
      const size_t range_start = at_;
      const char32_t first = character();
      char32_t last = first;
      if (peek() == '-' && peek(1) != ']' && at_ + 1 < text_.size()) {
        ++at_;
        last = character();
        if (last < first) fail_at(range_start, "a range that ends before it begins");
      }
      ranges.push_back({first, last});
    }
    ++at_;
    ranges = normalised(std::move(ranges));
    return grammar_.one_of(negated ? complement(ranges) : ranges);
  }

  // One character of a literal or class, escaped or not. Not at the end of the text.
  char32_t character() {
    if (peek() != '\\') {
      const CodePoint c = code_point_at(text_, at_);
      at_ += c.length;
      return c.value;
    }
    const char kind = peek(1);
    const size_t start = at_;
    at_ += std::min<size_t>(2, text_.size() - at_);
    switch (kind) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
        return static_cast<char32_t>(kind);
      case 'x':
        return hex(start, 2);
      case 'u':
        return hex(start, 4);
      case 'U':
        return hex(start, 8);
      default:
        fail_at(start, "an escape that GBNF does not have");
    }
  }

  char32_t hex(size_t start, int n_digits) {
    uint32_t value = 0;
    for (int i = 0; i < n_digits; ++i, ++at_) {
      const int digit = hex_digit(peek());
      if (digit < 0) fail_at(start, format("this escape has {} hexadecimal digits", n_digits));
      value = value * 16 + static_cast<uint32_t>(digit);
    }
    if (!is_scalar(value)) fail_at(start, "this escape is no character of Unicode");
    return value;
  }

  void check_rules() {
    const auto root = rules_.find("root");
    if (root == rules_.end() || !grammar_.is_defined(root->second)) {
      throw Error(ErrorCode::kInvalidArgument, "the grammar has no rule root");
    }
    for (int i = 0; i < grammar_.n_rules(); ++i) {
      if (grammar_.is_defined(RuleId(i))) continue;
      fail_at(first_use_[static_cast<size_t>(i)] - grammar_.rule_name(RuleId(i)).size(),
              format("rule {} is used and not defined", grammar_.rule_name(RuleId(i))));
    }
    grammar_.set_root(root->second);
  }

  std::string_view text_;
  size_t at_ = 0;
  int counted_lines_ = 1;  // of the text in front of counted_to_
  std::ptrdiff_t counted_to_ = 0;
  Grammar grammar_;
  std::unordered_map<std::string, RuleId> rules_;
  std::vector<size_t> first_use_;  // byte behind the name; index = rule
};

}  // namespace

Grammar parse_gbnf(std::string_view text, const GrammarLimits& limits) {
  if (text.size() > limits.max_source_bytes) {
    throw Error(ErrorCode::kUnsupported, format("a grammar of {} bytes is above the limit of {}",
                                                text.size(), limits.max_source_bytes));
  }
  return GbnfParser(text, limits).parse();
}

}  // namespace strata::text
