#include "strata/text/jinja/percent_format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/code_points.h"
#include "strata/text/jinja/numbers.h"
#include "strata/text/jinja/value_writer.h"

namespace strata::text {
namespace {

// Wide fields and many digits only serve to use up memory.
constexpr int64_t kMaxWidth = 4096;
constexpr int64_t kMaxPrecision = 300;

[[noreturn]] void fail(std::string message) {
  throw Error(ErrorCode::kInvalidArgument, "string formatting: " + std::move(message));
}

struct Spec {
  std::string fill = " ";
  char align = 0;  // '<' '>' '^' '=' or 0: by type
  char sign = '-';
  bool alternate = false;
  bool group = false;
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

// Reads a number at `at`; -1 if there is none.
int64_t read_count(std::string_view text, size_t& at, int64_t limit) {
  int64_t value = -1;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    value = std::max<int64_t>(value, 0) * 10 + (text[at++] - '0');
    if (value > limit) fail(format("a width or precision above {}", limit));
  }
  return value;
}

std::string in_base(uint64_t magnitude, unsigned base, bool upper) {
  std::string out;
  do {
    const auto digit = static_cast<unsigned>(magnitude % base);
    out.push_back(static_cast<char>(digit < 10 ? '0' + digit : (upper ? 'A' : 'a') + digit - 10));
    magnitude /= base;
  } while (magnitude != 0);
  std::reverse(out.begin(), out.end());
  return out;
}

std::string grouped(std::string digits) {
  const size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  for (size_t at = whole; at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

// Without its sign, which goes to `negative`.
std::string integer_digits(int64_t value, const Spec& spec, bool& negative) {
  negative = value < 0;
  const uint64_t magnitude =
      negative ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  switch (spec.type) {
    case 'x':
      return (spec.alternate ? "0x" : "") + in_base(magnitude, 16, false);
    case 'X':
      return (spec.alternate ? "0X" : "") + in_base(magnitude, 16, true);
    case 'o':
      return (spec.alternate ? "0o" : "") + in_base(magnitude, 8, false);
    case 'b':
      return (spec.alternate ? "0b" : "") + in_base(magnitude, 2, false);
    default:
      break;
  }
  const std::string digits = in_base(magnitude, 10, false);
  return spec.group ? grouped(digits) : digits;
}

std::string float_digits(double value, const Spec& spec, bool& negative) {
  negative = std::signbit(value) && !std::isnan(value);
  value = std::fabs(value);
  const char type = spec.type == 'n' ? 'g' : spec.type == '%' ? 'f' : spec.type;
  const bool upper = type >= 'A' && type <= 'Z';
  if (!std::isfinite(value))
    return std::isnan(value) ? (upper ? "NAN" : "nan") : upper ? "INF" : "inf";
  if (spec.type == 0) {
    if (spec.precision < 0) return number_text(value);
    throw Error(ErrorCode::kUnsupported, "string formatting: a precision needs a field type");
  }
  if (spec.type == '%') value *= 100;
  const char pattern[] = {'%',
                          spec.alternate ? '#' : '.',
                          spec.alternate ? '.' : '*',
                          spec.alternate ? '*' : type,
                          spec.alternate ? type : '\0',
                          '\0'};
  const int precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
  char buffer[700];
  std::snprintf(buffer, sizeof(buffer), pattern, precision, value);
  std::string digits = buffer;
  if (spec.group) digits = grouped(std::move(digits));
  if (spec.type == '%') digits += "%";
  return digits;
}

// Writes text in its field; `prefix` is the sign.
void write_field(const MarkedText& text, std::string_view prefix, const Spec& spec, char align,
                 MarkedTextBuilder& out) {
  const auto length = static_cast<int64_t>(count_code_points(text.bytes()) + prefix.size());
  const int64_t room = std::max<int64_t>(spec.width - length, 0);
  const int64_t left = align == '>' || align == '=' ? room : align == '^' ? room / 2 : 0;
  const auto pad = [&](int64_t n) {
    for (int64_t i = 0; i < n; ++i) out.add(spec.fill, Origin::kContent);
  };
  if (align == '=') out.add(prefix, Origin::kScaffold);
  pad(left);
  if (align != '=') out.add(prefix, Origin::kScaffold);
  out.add(text);
  pad(room - left);
}

void write_number(const Value& value, const Spec& spec, MarkedTextBuilder& out) {
  bool negative = false;
  const bool whole = spec.type == 'd' || spec.type == 'x' || spec.type == 'X' || spec.type == 'o' ||
                     spec.type == 'b' || (spec.type == 0 && !value.is(Value::Kind::kNumber));
  std::string digits;
  if (whole) {
    const std::optional<int64_t> integer = to_integer(value);
    if (!integer) fail(format("an integer is needed, not a {}", type_name(value)));
    digits = integer_digits(*integer, spec, negative);
  } else {
    digits = float_digits(to_double(value), spec, negative);
  }
  const std::string sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  write_field(MarkedText(std::move(digits), Origin::kScaffold), sign, spec,
              spec.align == 0 ? '>' : spec.align, out);
}

void write_string(const Value& value, const Spec& spec, MarkedTextBuilder& out, char align) {
  const MarkedText& text = value.as_text();
  if (spec.precision < 0 && spec.width == 0) return out.add(text);
  size_t end = text.size();
  if (spec.precision >= 0)
    end = code_point_offset(text.bytes(), static_cast<size_t>(spec.precision));
  const auto length = static_cast<int64_t>(count_code_points(text.bytes().substr(0, end)));
  const int64_t room = std::max<int64_t>(spec.width - length, 0);
  const int64_t left = align == '>' ? room : align == '^' ? room / 2 : 0;
  for (int64_t i = 0; i < left; ++i) out.add(spec.fill, Origin::kContent);
  out.add(text, 0, end);
  for (int64_t i = left; i < room; ++i) out.add(spec.fill, Origin::kContent);
}

Value repr_of(const Value& value, TemplateBudget& budget) {
  MarkedTextBuilder out(budget);
  write_repr(value, out, budget);
  return Value::string(out.take());
}

// One run of text % argument.
class PercentFormatter {
 public:
  PercentFormatter(const MarkedText& text, const Value& argument, TemplateBudget& budget)
      : text_(text), bytes_(text.bytes()), argument_(argument), budget_(budget), out_(budget) {
    tuple_ = argument.is_list() && argument.as_list().kind() == ListKind::kTuple;
  }

  Value run() {
    while (at_ < bytes_.size()) {
      const size_t percent = std::min(bytes_.find('%', at_), bytes_.size());
      out_.add(text_, at_, percent);
      at_ = percent;
      if (at_ == bytes_.size()) break;
      budget_.step();
      ++at_;
      field(percent);
    }
    const size_t given = tuple_ ? argument_.as_list().items().size() : 1;
    const bool all_used = used_ >= given || argument_.is_map() || argument_.is_undefined() ||
                          (!tuple_ && argument_.is_list() && used_ == 0);
    if (!all_used && !named_) fail("not all arguments are used");
    return Value::string(out_.take());
  }

 private:
  char peek() const {
    if (at_ >= bytes_.size()) fail("the format ends inside a field");
    return bytes_[at_];
  }

  Value next() {
    if (tuple_) {
      const Value::Items& items = argument_.as_list().items();
      if (used_ >= items.size()) fail("not enough arguments");
      return items[used_++];
    }
    if (used_ > 0) fail("not enough arguments");
    ++used_;
    return argument_;
  }

  int64_t count(int64_t limit) {
    if (peek() != '*') return read_count(bytes_, at_, limit);
    ++at_;
    const std::optional<int64_t> value = to_integer(next());
    if (!value) fail("* needs an integer");
    if (*value < 0 || *value > limit) fail(format("a width or precision above {}", limit));
    return *value;
  }

  void field(size_t begin) {
    Spec spec;
    std::optional<Value> value;
    if (peek() == '(') {
      const size_t close = bytes_.find(')', at_);
      if (close == std::string_view::npos) fail("a name without ')'");
      if (!argument_.is_map()) fail("a name needs a map");
      const std::string_view name = bytes_.substr(at_ + 1, close - at_ - 1);
      const Value* found = argument_.as_map().find(name);
      if (found == nullptr) fail(format("the map has no key '{}'", name));
      value = *found;
      named_ = true;
      at_ = close + 1;
    }
    bool left = false;
    bool zero = false;
    for (;; ++at_) {
      const char c = peek();
      if (c == '-') {
        left = true;
      } else if (c == '0') {
        zero = true;
      } else if (c == '+' || (c == ' ' && spec.sign != '+')) {
        spec.sign = c;
      } else if (c == '#') {
        spec.alternate = true;
      } else if (c != ' ') {
        break;
      }
    }
    spec.width = std::max<int64_t>(count(kMaxWidth), 0);
    if (peek() == '.') {
      ++at_;
      spec.precision = std::max<int64_t>(count(kMaxPrecision), 0);
    }
    if (peek() == 'l' || peek() == 'h' || peek() == 'L') ++at_;
    const char type = peek();
    ++at_;
    if (type == '%') {
      out_.add(text_, begin, begin + 1);
      return;
    }
    write(type, value ? *value : next(), spec, left, zero);
  }

  void write(char type, const Value& value, Spec& spec, bool left, bool zero) {
    spec.align = left ? '<' : zero ? '=' : '>';
    switch (type) {
      case 's':
        return write_string(to_text(value, budget_), spec, out_, left ? '<' : '>');
      case 'r':
        return write_string(repr_of(value, budget_), spec, out_, left ? '<' : '>');
      case 'c':
        return character(value, spec, left);
      default:
        break;
    }
    if (std::string_view("diuxXoeEfFgG").find(type) == std::string_view::npos) {
      fail(format("unknown field type '{}'", type));
    }
    if (value.is_undefined()) fail(value.reason());
    if (!is_numeric(value)) fail(format("a number is needed, not a {}", type_name(value)));
    if (zero && !left) spec.fill = "0";
    spec.type = type;
    if (type == 'd' || type == 'i' || type == 'u') {
      spec.type = 'd';
      integer(value.is(Value::Kind::kNumber) ? truncated(value.as_number()) : *to_integer(value),
              spec);
    } else if (type == 'x' || type == 'X' || type == 'o') {
      if (value.is(Value::Kind::kNumber)) fail("an integer is needed, not a float");
      integer(*to_integer(value), spec);
    } else {
      write_number(value, spec, out_);
    }
  }

  // The precision of an integer is its least number of digits.
  void integer(int64_t value, const Spec& spec) {
    bool negative = false;
    Spec plain = spec;
    plain.alternate = false;
    std::string digits = integer_digits(value, plain, negative);
    if (static_cast<int64_t>(digits.size()) < spec.precision) {
      digits.insert(0, static_cast<size_t>(spec.precision) - digits.size(), '0');
    }
    std::string sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
    if (spec.alternate && spec.type != 'd') sign += std::string("0") + spec.type;
    write_field(MarkedText(std::move(digits), Origin::kScaffold), sign, spec, spec.align, out_);
  }

  void character(const Value& value, const Spec& spec, bool left) {
    if (value.is_string() && count_code_points(value.as_string()) == 1) {
      return write_string(value, spec, out_, left ? '<' : '>');
    }
    const std::optional<int64_t> code = to_integer(value);
    if (!code || *code < 0 || *code > 0x10FFFF || (*code >= 0xD800 && *code < 0xE000)) {
      fail("%c needs a character");
    }
    std::string bytes;
    append_code_point(bytes, static_cast<char32_t>(*code));
    write_string(Value::content(bytes), spec, out_, left ? '<' : '>');
  }

  const MarkedText& text_;
  std::string_view bytes_;
  const Value& argument_;
  TemplateBudget& budget_;
  MarkedTextBuilder out_;
  bool tuple_ = false;
  bool named_ = false;
  size_t used_ = 0;
  size_t at_ = 0;
};

// [[fill]align][sign][#][0][width][,][.precision][type]
Spec read_spec(std::string_view text) {
  Spec spec;
  size_t at = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (!text.empty()) {
    const size_t first = code_point_at(text, 0).length;
    if (first < text.size() && is_align(text[first])) {
      spec.fill = text.substr(0, first);
      spec.align = text[first];
      at = first + 1;
    } else if (is_align(text[0])) {
      spec.align = text[0];
      at = 1;
    }
  }
  const auto next_is = [&](char c) { return at < text.size() && text[at] == c; };
  if (next_is('+') || next_is('-') || next_is(' ')) spec.sign = text[at++];
  if (next_is('#')) {
    spec.alternate = true;
    ++at;
  }
  if (next_is('0')) {
    if (spec.align == 0) {
      spec.fill = "0";
      spec.align = '=';
    }
    ++at;
  }
  spec.width = std::max<int64_t>(read_count(text, at, kMaxWidth), 0);
  if (next_is(',')) {
    spec.group = true;
    ++at;
  }
  if (next_is('.')) {
    ++at;
    spec.precision = read_count(text, at, kMaxPrecision);
    if (spec.precision < 0) fail("a precision is missing");
  }
  if (at < text.size()) spec.type = text[at++];
  if (at != text.size()) fail(format("cannot read the format '{}'", text));
  return spec;
}

void write_with_spec(const Value& value, std::string_view text, MarkedTextBuilder& out,
                     TemplateBudget& budget) {
  if (text.empty()) return write_text(value, out, budget);
  const Spec spec = read_spec(text);
  if (value.is_string()) {
    if ((spec.type != 0 && spec.type != 's') || spec.align == '=' || spec.sign != '-') {
      fail(format("the format '{}' is not for strings", text));
    }
    return write_string(value, spec, out, spec.align == 0 ? '<' : spec.align);
  }
  if (!is_numeric(value)) fail(format("a {} takes no format", type_name(value)));
  if (std::string_view("dxXobeEfFgGn%").find(spec.type) == std::string_view::npos &&
      spec.type != 0) {
    fail(format("unknown field type '{}'", spec.type));
  }
  write_number(value, spec, out);
}

}  // namespace

Value format_percent(const MarkedText& text, const Value& argument, TemplateBudget& budget) {
  return PercentFormatter(text, argument, budget).run();
}

Value format_braces(const MarkedText& text, const CallArguments& arguments,
                    TemplateBudget& budget) {
  const std::string_view bytes = text.bytes();
  MarkedTextBuilder out(budget);
  size_t automatic = 0;
  for (size_t at = 0; at < bytes.size();) {
    const size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    out.add(text, at, brace);
    at = brace;
    if (at == bytes.size()) break;
    budget.step();
    if (at + 1 < bytes.size() && bytes[at + 1] == bytes[at]) {
      out.add(text, at, at + 1);
      at += 2;
      continue;
    }
    if (bytes[at] == '}') fail("a single '}'");
    const size_t close = bytes.find('}', at);
    if (close == std::string_view::npos) fail("a '{' without '}'");
    std::string_view field = bytes.substr(at + 1, close - at - 1);
    at = close + 1;
    if (field.find('{') != std::string_view::npos) {
      throw Error(ErrorCode::kUnsupported, "string formatting: a field inside a field");
    }
    const size_t colon = std::min(field.find(':'), field.size());
    const std::string_view spec = colon < field.size() ? field.substr(colon + 1) : "";
    field = field.substr(0, colon);
    const size_t bang = std::min(field.find('!'), field.size());
    const std::string_view conversion = field.substr(bang);
    const std::string_view name = field.substr(0, bang);
    const Value* value = nullptr;
    if (name.find_first_of(".[") != std::string_view::npos) {
      throw Error(ErrorCode::kUnsupported, format("string formatting: the field '{}'", name));
    }
    if (name.find_first_not_of("0123456789") == std::string_view::npos) {
      size_t digits = 0;
      const size_t index =
          name.empty() ? automatic++ : static_cast<size_t>(read_count(name, digits, kMaxWidth));
      if (index >= arguments.positional.size()) fail(format("argument {} is missing", index));
      value = &arguments.positional[index];
    } else {
      for (const auto& [key, given] : arguments.named) {
        if (key == name) value = &given;
      }
      if (value == nullptr) fail(format("argument '{}' is missing", name));
    }
    if (conversion.empty()) {
      write_with_spec(*value, spec, out, budget);
    } else if (conversion == "!r") {
      write_with_spec(repr_of(*value, budget), spec, out, budget);
    } else if (conversion == "!s") {
      write_with_spec(to_text(*value, budget), spec, out, budget);
    } else {
      fail(format("unknown conversion '{}'", conversion));
    }
  }
  return Value::string(out.take());
}

}  // namespace strata::text
