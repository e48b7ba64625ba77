#include "strata/text/grammar/regex.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/code_points.h"
#include "strata/text/grammar/digits.h"
#include "strata/text/grammar/json_text.h"
#include "strata/text/utf8.h"

namespace strata::text {
namespace {

bool is_letter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

CodePointRanges everything() { return normalised({{0, kLastCodePoint}}); }

CodePointRanges digits() { return {{'0', '9'}}; }

CodePointRanges word_characters() {
  return normalised({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
}

// WhiteSpace and LineTerminator of ECMA-262.
CodePointRanges spaces() {
  return normalised({{'\t', '\r'},
                     {' ', ' '},
                     {0xA0, 0xA0},
                     {0x1680, 0x1680},
                     {0x2000, 0x200A},
                     {0x2028, 0x2029},
                     {0x202F, 0x202F},
                     {0x205F, 0x205F},
                     {0x3000, 0x3000},
                     {0xFEFF, 0xFEFF}});
}

CodePointRanges not_line_ends() {
  return complement(normalised({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}));
}

// What a part of the pattern matches, and whether it is held to the ends of the text.
struct Part {
  GrammarNodeId node;
  bool at_start = false;
  bool at_end = false;
};

class RegexParser {
 public:
  RegexParser(Grammar& grammar, std::string_view pattern, const RegexOptions& options)
      : grammar_(grammar), options_(options) {
    if (pattern.size() > grammar.limits().max_source_bytes) {
      throw Error(ErrorCode::kUnsupported,
                  format("a pattern of {} bytes is above the limit of {}", pattern.size(),
                         grammar.limits().max_source_bytes));
    }
    if (valid_utf8_prefix(pattern) != pattern.size()) {
      throw Error(ErrorCode::kInvalidArgument, "the pattern is not UTF-8");
    }
    for (size_t at = 0; at < pattern.size();) {
      const CodePoint c = code_point_at(pattern, at);
      pattern_.push_back(c.value);
      at += c.length;
    }
  }

  GrammarNodeId parse() {
    std::vector<Part> parts = alternatives(0);
    if (at_ < pattern_.size()) fail("this parenthesis was not opened");
    std::vector<GrammarNodeId> nodes;
    for (const Part& part : parts) nodes.push_back(options_.full_match ? part.node : search(part));
    return grammar_.alternatives(nodes);
  }

 private:
  [[noreturn]] void fail_at(size_t at, const std::string& what, ErrorCode code) const {
    throw Error(code, format("pattern, character {}: {}", at + 1, what));
  }
  [[noreturn]] void fail(const std::string& what) const {
    fail_at(at_, what, ErrorCode::kInvalidArgument);
  }
  [[noreturn]] void refuse(size_t at, const std::string& what) const {
    fail_at(at, what + " not supported", ErrorCode::kUnsupported);
  }

  // Zero at the end; a zero of the pattern is told apart by at_.
  char32_t peek(size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : 0;
  }
  bool ended() const { return at_ >= pattern_.size(); }
  bool follows(std::u32string_view text) const {
    return std::u32string_view(pattern_).substr(at_).starts_with(text);
  }

  GrammarNodeId one_of(CodePointRanges ranges) {
    if (options_.one_line) {
      ranges = intersection(ranges, complement(CodePointRanges{{'\n', '\n'}}));
    }
    return options_.in_json_string ? json_characters(grammar_, ranges) : grammar_.one_of(ranges);
  }

  GrammarNodeId search(const Part& part) {
    const GrammarNodeId any = grammar_.repeat(one_of(everything()), 0, kUnbounded);
    std::vector<GrammarNodeId> nodes;
    if (!part.at_start) nodes.push_back(any);
    nodes.push_back(part.node);
    if (!part.at_end) nodes.push_back(any);
    return grammar_.sequence(nodes);
  }

  std::vector<Part> alternatives(int depth) {
    if (depth > grammar_.limits().max_depth) {
      fail_at(at_, format("groups deeper than {}", grammar_.limits().max_depth),
              ErrorCode::kUnsupported);
    }
    std::vector<Part> parts{sequence(depth)};
    while (peek() == '|') {
      ++at_;
      parts.push_back(sequence(depth));
    }
    return parts;
  }

  Part sequence(int depth) {
    std::vector<GrammarNodeId> nodes;
    Part whole;
    while (!ended() && peek() != '|' && peek() != ')') {
      const size_t start = at_;
      if (peek() == '^' || peek() == '$') {
        if (peek() == '^' && !nodes.empty()) refuse(start, "^ behind the start of the pattern is");
        (peek() == '^' ? whole.at_start : whole.at_end) = true;
        ++at_;
        if (quantifier()) refuse(start, "a repeated anchor is");
        continue;
      }
      const Part part = atom(depth);
      if (part.at_start && !nodes.empty()) refuse(start, "^ behind the start of the pattern is");
      if (whole.at_end) refuse(start, "$ in front of the end of the pattern is");
      const std::optional<Count> count = quantifier();
      if (count && (part.at_start || part.at_end)) refuse(start, "a repeated anchor is");
      nodes.push_back(count ? grammar_.repeat(part.node, count->min, count->max) : part.node);
      whole.at_start = whole.at_start || part.at_start;
      whole.at_end = part.at_end;
    }
    whole.node = grammar_.sequence(nodes);
    return whole;
  }

  struct Count {
    int min;
    int max;
  };

  std::optional<Count> quantifier() {
    std::optional<Count> count;
    if (ended()) return count;
    switch (peek()) {
      case '*':
        count = {0, kUnbounded};
        ++at_;
        break;
      case '+':
        count = {1, kUnbounded};
        ++at_;
        break;
      case '?':
        count = {0, 1};
        ++at_;
        break;
      case '{':
        count = braces();
        break;
      default:
        break;
    }
    if (count && peek() == '?') ++at_;  // lazy: other matches first, the same ones
    return count;
  }

  // A brace that begins no quantifier is a character, as browsers have it.
  std::optional<Count> braces() {
    const size_t start = at_;
    ++at_;
    const std::optional<int> min = number();
    std::optional<int> max = min;
    if (min && peek() == ',') {
      ++at_;
      max = is_digit(peek()) ? number() : kUnbounded;
    }
    if (!min || peek() != '}') {
      at_ = start;
      return std::nullopt;
    }
    ++at_;
    if (*max != kUnbounded && *max < *min) {
      fail_at(start, "the second number is below the first", ErrorCode::kInvalidArgument);
    }
    return Count{*min, *max};
  }

  std::optional<int> number() {
    if (!is_digit(peek())) return std::nullopt;
    int value = 0;
    for (; is_digit(peek()); ++at_) {
      value = value * 10 + static_cast<int>(peek() - '0');
      if (value > grammar_.limits().max_repeat) {
        fail_at(at_, format("a repetition above {} times", grammar_.limits().max_repeat),
                ErrorCode::kUnsupported);
      }
    }
    return value;
  }

  Part atom(int depth) {
    const char32_t c = peek();
    switch (c) {
      case '(':
        return group(depth);
      case '[':
        return {one_of(character_class())};
      case '.':
        ++at_;
        return {one_of(not_line_ends())};
      case '\\':
        return {one_of(escape(false))};
      case '*':
      case '+':
      case '?':
        fail("nothing to repeat");
      case '{':
        if (braces()) fail("nothing to repeat");
        break;
      default:
        break;
    }
    ++at_;
    return {one_of({{c, c}})};
  }

  Part group(int depth) {
    const size_t start = at_;
    ++at_;
    if (peek() == '?') {
      if (follows(U"?=") || follows(U"?!")) refuse(start, "look-ahead is");
      if (follows(U"?<=") || follows(U"?<!")) refuse(start, "look-behind is");
      if (follows(U"?<")) {
        const size_t end = pattern_.find(U'>', at_);
        if (end == std::u32string_view::npos) fail("the name of this group does not end");
        at_ = end + 1;
      } else if (follows(U"?:")) {
        at_ += 2;
      } else {
        refuse(start, "flags of a group are");
      }
    }
    const std::vector<Part> parts = alternatives(depth + 1);
    if (peek() != ')') {
      fail_at(start, "this parenthesis is not closed", ErrorCode::kInvalidArgument);
    }
    ++at_;
    return joined(parts, start);
  }

  Part joined(const std::vector<Part>& parts, size_t start) {
    Part whole;
    std::vector<GrammarNodeId> nodes;
    for (const Part& part : parts) {
      nodes.push_back(part.node);
      const bool alike = part.at_start == parts[0].at_start && part.at_end == parts[0].at_end;
      // In a search the alternatives would need different surroundings.
      if (!alike && !options_.full_match) {
        refuse(start, "an anchor in some alternatives of a group is");
      }
      whole.at_start = whole.at_start || part.at_start;
      whole.at_end = whole.at_end || part.at_end;
    }
    whole.node = grammar_.alternatives(nodes);
    return whole;
  }

  CodePointRanges character_class() {
    const size_t start = at_;
    ++at_;
    const bool negated = peek() == '^';
    if (negated) ++at_;
    CodePointRanges set;
    while (peek() != ']') {
      if (ended()) fail_at(start, "this bracket is not closed", ErrorCode::kInvalidArgument);
      const size_t from = at_;
      CodePointRanges item = class_item();
      if (peek() == '-' && peek(1) != ']' && at_ + 1 < pattern_.size() && is_one(item)) {
        ++at_;
        const CodePointRanges last = class_item();
        if (!is_one(last)) {
          item.push_back({'-', '-'});
          item.insert(item.end(), last.begin(), last.end());
        } else if (last[0].first < item[0].first) {
          fail_at(from, "a range that ends before it begins", ErrorCode::kInvalidArgument);
        } else {
          item[0].last = last[0].last;
        }
      }
      set.insert(set.end(), item.begin(), item.end());
    }
    ++at_;
    set = normalised(std::move(set));
    return negated ? complement(set) : set;
  }

  static bool is_one(const CodePointRanges& set) {
    return set.size() == 1 && set[0].first == set[0].last;
  }

  CodePointRanges class_item() {
    if (ended()) fail("this bracket is not closed");
    if (peek() == '\\') return escape(true);
    const char32_t c = peek();
    ++at_;
    return {{c, c}};
  }

  CodePointRanges escape(bool in_class) {
    const size_t start = at_;
    ++at_;
    if (ended()) fail("an escape without a character");
    const char32_t c = peek();
    ++at_;
    switch (c) {
      case 'd':
        return digits();
      case 'D':
        return complement(digits());
      case 'w':
        return word_characters();
      case 'W':
        return complement(word_characters());
      case 's':
        return spaces();
      case 'S':
        return complement(spaces());
      case 'p':
      case 'P':
        refuse(start, "a property of Unicode is");
      case 'k':
        refuse(start, "a back-reference is");
      case 'b':
        if (!in_class) refuse(start, "a word boundary is");
        return {{'\b', '\b'}};
      case 'B':
        refuse(start, "a word boundary is");
      default:
        break;
    }
    if (c >= '1' && c <= '9') refuse(start, "a back-reference is");
    const char32_t value = escaped_character(start, c);
    return {{value, value}};
  }

  char32_t escaped_character(size_t start, char32_t c) {
    switch (c) {
      case 't':
        return '\t';
      case 'n':
        return '\n';
      case 'v':
        return '\v';
      case 'f':
        return '\f';
      case 'r':
        return '\r';
      case '0':
        if (is_digit(peek())) refuse(start, "an octal escape is");
        return 0;
      case 'c':
        if (!is_letter(peek())) fail("a control escape without a letter");
        ++at_;
        return pattern_[at_ - 1] % 32;
      case 'x':
        return checked(start, hex(start, 2));
      case 'u':
        return unicode(start);
      default:
        break;
    }
    if (is_letter(c)) fail_at(start, "an escape that is not known", ErrorCode::kInvalidArgument);
    return c;
  }

  char32_t unicode(size_t start) {
    if (peek() == '{') {
      ++at_;
      char32_t value = 0;
      int n_digits = 0;
      for (; hex_digit(peek()) >= 0 && n_digits < 8; ++at_, ++n_digits) {
        value = value * 16 + static_cast<char32_t>(hex_digit(peek()));
      }
      if (n_digits == 0 || peek() != '}') fail("expected hexadecimal digits and a brace");
      ++at_;
      return checked(start, value);
    }
    const char32_t value = hex(start, 4);
    if (value >= 0xD800 && value <= 0xDBFF && peek() == '\\' && peek(1) == 'u') {
      at_ += 2;
      const char32_t second = hex(start, 4);
      if (second >= 0xDC00 && second <= 0xDFFF) {
        return 0x10000 + ((value - 0xD800) << 10) + (second - 0xDC00);
      }
    }
    return checked(start, value);
  }

  char32_t hex(size_t start, int n_digits) {
    char32_t value = 0;
    for (int i = 0; i < n_digits; ++i, ++at_) {
      const int digit = ended() ? -1 : hex_digit(peek());
      if (digit < 0) {
        fail_at(start, format("this escape has {} hexadecimal digits", n_digits),
                ErrorCode::kInvalidArgument);
      }
      value = value * 16 + static_cast<char32_t>(digit);
    }
    return value;
  }

  char32_t checked(size_t start, char32_t value) const {
    if (!is_scalar(value)) {
      fail_at(start, "this escape is no character of Unicode", ErrorCode::kInvalidArgument);
    }
    return value;
  }

  Grammar& grammar_;
  RegexOptions options_;
  std::u32string pattern_;
  size_t at_ = 0;
};

}  // namespace

GrammarNodeId add_regex(Grammar& grammar, std::string_view pattern, const RegexOptions& options) {
  return RegexParser(grammar, pattern, options).parse();
}

Grammar regex_grammar(std::string_view pattern, const RegexOptions& options,
                      const GrammarLimits& limits) {
  Grammar grammar(limits);
  const RuleId root = grammar.add_rule("root");
  grammar.define(root, add_regex(grammar, pattern, options));
  return grammar;
}

}  // namespace strata::text
