#include "strata/text/jinja/numbers.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/code_points.h"

namespace strata::text {
namespace {

constexpr double kTwoTo63 = 9223372036854775808.0;

[[noreturn]] void too_large() {
  throw Error(ErrorCode::kInvalidArgument, "an integer does not fit in 64 bits");
}

[[noreturn]] void by_zero() { throw Error(ErrorCode::kInvalidArgument, "division by zero"); }

std::partial_ordering compare(int64_t a, double b) {
  if (std::isnan(b)) return std::partial_ordering::unordered;
  if (b >= kTwoTo63) return std::partial_ordering::less;
  if (b < -kTwoTo63) return std::partial_ordering::greater;
  const auto whole = static_cast<int64_t>(b);
  if (a != whole) return a <=> whole;
  return 0.0 <=> b - static_cast<double>(whole);
}

std::partial_ordering reversed(std::partial_ordering order) {
  if (order == std::partial_ordering::less) return std::partial_ordering::greater;
  if (order == std::partial_ordering::greater) return std::partial_ordering::less;
  return order;
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) by_zero();
  if (b == -1) {
    if (a == std::numeric_limits<int64_t>::min()) too_large();
    return -a;
  }
  const int64_t quotient = a / b;
  return (a % b != 0 && (a % b < 0) != (b < 0)) ? quotient - 1 : quotient;
}

int64_t modulo(int64_t a, int64_t b) {
  if (b == 0) by_zero();
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return (rest != 0 && (rest < 0) != (b < 0)) ? rest + b : rest;
}

double modulo(double a, double b) {
  if (b == 0) by_zero();
  double rest = std::fmod(a, b);
  if (rest != 0) {
    if ((rest < 0) != (b < 0)) rest += b;
  } else {
    rest = std::copysign(0.0, b);
  }
  return rest;
}

double floor_divide(double a, double b) {
  const double rest = modulo(a, b);
  double quotient = (a - rest) / b;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

int64_t power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (;;) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) too_large();
    exponent >>= 1;
    if (exponent == 0) return result;
    if (base == 1) return result;
    if (base == 0) return 0;
    if (__builtin_mul_overflow(base, base, &base)) too_large();
  }
}

double power(double base, double exponent) {
  if (base == 0 && exponent < 0) by_zero();
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) &&
      std::floor(exponent) != exponent) {
    throw Error(ErrorCode::kUnsupported, "a power that is a complex number");
  }
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) {
    throw Error(ErrorCode::kInvalidArgument, "a power is too large");
  }
  return result;
}

Value calculate(Arithmetic op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Arithmetic::kAdd:
      if (__builtin_add_overflow(a, b, &result)) too_large();
      return Value::integer(result);
    case Arithmetic::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) too_large();
      return Value::integer(result);
    case Arithmetic::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) too_large();
      return Value::integer(result);
    case Arithmetic::kDivide:
      if (b == 0) by_zero();
      return Value::number(static_cast<double>(a) / static_cast<double>(b));
    case Arithmetic::kFloorDivide:
      return Value::integer(floor_divide(a, b));
    case Arithmetic::kModulo:
      return Value::integer(modulo(a, b));
    case Arithmetic::kPower:
      if (b >= 0) return Value::integer(power(a, b));
      return Value::number(power(static_cast<double>(a), static_cast<double>(b)));
  }
  STRATA_CHECK(false);
}

// Strips blanks and checks and removes underscores between digits. False if they are misplaced.
bool clean_number(std::string_view text, std::string& out) {
  size_t begin = 0;
  size_t end = text.size();
  trim_spaces(text, begin, end);
  text = text.substr(begin, end - begin);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\0') return false;
    if (text[i] != '_') {
      out.push_back(text[i]);
      continue;
    }
    const auto alnum = [](char c) {
      return (c | 0x20) >= 'a' ? (c | 0x20) <= 'z' : c >= '0' && c <= '9';
    };
    if (i == 0 || i + 1 == text.size() || !alnum(text[i - 1]) || !alnum(text[i + 1])) return false;
  }
  return !out.empty();
}

}  // namespace

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      return "undefined value";
    case Value::Kind::kNull:
      return "NoneType";
    case Value::Kind::kBool:
      return "bool";
    case Value::Kind::kInteger:
      return "int";
    case Value::Kind::kNumber:
      return "float";
    case Value::Kind::kString:
      return "str";
    case Value::Kind::kList:
      switch (value.as_list().kind()) {
        case ListKind::kList:
          return "list";
        case ListKind::kTuple:
          return "tuple";
        case ListKind::kGenerator:
          return "generator";
        case ListKind::kRange:
          return "range";
        case ListKind::kKeys:
          return "dict_keys";
        case ListKind::kValues:
          return "dict_values";
        case ListKind::kItems:
          return "dict_items";
      }
      return "list";
    case Value::Kind::kMap:
      return "dict";
    case Value::Kind::kObject:
      return "object";
  }
  return "object";
}

bool is_numeric(const Value& value) {
  return value.is(Value::Kind::kBool) || value.is(Value::Kind::kInteger) ||
         value.is(Value::Kind::kNumber);
}

bool is_nan(const Value& value) {
  return value.is(Value::Kind::kNumber) && std::isnan(value.as_number());
}

std::optional<int64_t> to_integer(const Value& value) {
  if (value.is(Value::Kind::kBool)) return value.as_bool() ? 1 : 0;
  if (value.is(Value::Kind::kInteger)) return value.as_integer();
  return std::nullopt;
}

double to_double(const Value& value) {
  if (value.is(Value::Kind::kNumber)) return value.as_number();
  const std::optional<int64_t> integer = to_integer(value);
  STRATA_CHECK(integer.has_value());
  return static_cast<double>(*integer);
}

std::partial_ordering compare_numbers(const Value& a, const Value& b) {
  const std::optional<int64_t> left = to_integer(a);
  const std::optional<int64_t> right = to_integer(b);
  if (left && right) return *left <=> *right;
  if (left) return compare(*left, b.as_number());
  if (right) return reversed(compare(*right, a.as_number()));
  return a.as_number() <=> b.as_number();
}

Value calculate(Arithmetic op, const Value& a, const Value& b) {
  const std::optional<int64_t> left = to_integer(a);
  const std::optional<int64_t> right = to_integer(b);
  if (left && right) return calculate(op, *left, *right);
  const double x = to_double(a);
  const double y = to_double(b);
  switch (op) {
    case Arithmetic::kAdd:
      return Value::number(x + y);
    case Arithmetic::kSubtract:
      return Value::number(x - y);
    case Arithmetic::kMultiply:
      return Value::number(x * y);
    case Arithmetic::kDivide:
      if (y == 0) by_zero();
      return Value::number(x / y);
    case Arithmetic::kFloorDivide:
      return Value::number(floor_divide(x, y));
    case Arithmetic::kModulo:
      return Value::number(modulo(x, y));
    case Arithmetic::kPower:
      return Value::number(power(x, y));
  }
  STRATA_CHECK(false);
}

Value negate(const Value& value) {
  if (const std::optional<int64_t> integer = to_integer(value)) {
    if (*integer == std::numeric_limits<int64_t>::min()) too_large();
    return Value::integer(-*integer);
  }
  return Value::number(-value.as_number());
}

Value absolute(const Value& value) {
  if (const std::optional<int64_t> integer = to_integer(value)) {
    return *integer < 0 ? negate(value) : Value::integer(*integer);
  }
  return Value::number(std::fabs(value.as_number()));
}

double round_to(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 322) return value;
  if (digits < -308) return std::copysign(0.0, value);
  if (digits < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(value / unit) * unit;
  }
  // The C library prints the exact value rounded half to even. 309 digits before the point.
  char buffer[680];
  std::snprintf(buffer, sizeof(buffer), "%.*f", static_cast<int>(digits), value);
  return std::strtod(buffer, nullptr);
}

int64_t truncated(double value) {
  if (std::isnan(value)) {
    throw Error(ErrorCode::kInvalidArgument, "NaN has no integer value");
  }
  if (!(value < kTwoTo63 && value >= -kTwoTo63)) too_large();
  return static_cast<int64_t>(value);
}

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific).ptr;
  // d[.ddd]e[+-]xx
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  std::string out;
  if (text.front() == '-') {
    out = "-";
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  int exponent = 0;
  const size_t digits_at = text[e + 1] == '+' ? e + 2 : e + 1;  // from_chars takes no plus sign
  std::from_chars(text.data() + digits_at, text.data() + text.size(), exponent);
  std::string digits(text.substr(0, 1));
  if (e > 2) digits += text.substr(2, e - 2);
  const int n = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (n > 1) out += "." + digits.substr(1);
    return out + format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (n <= exponent + 1) {
    return out + digits + std::string(static_cast<size_t>(exponent + 1 - n), '0') + ".0";
  }
  const auto whole = static_cast<size_t>(exponent + 1);
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::optional<int64_t> parse_integer(std::string_view text, int base) {
  std::string clean;
  if (base != 0 && (base < 2 || base > 36)) {
    throw Error(ErrorCode::kInvalidArgument, "the base of an integer is 0 or 2 to 36");
  }
  if (!clean_number(text, clean)) return std::nullopt;
  std::string_view digits = clean;
  const bool negative = digits.front() == '-';
  if (negative || digits.front() == '+') digits.remove_prefix(1);
  if (digits.size() > 2 && digits[0] == '0') {
    const char mark = static_cast<char>(digits[1] | 0x20);
    const int marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (marked != 0 && (base == marked || base == 0)) {
      digits.remove_prefix(2);
      base = marked;
    }
  }
  if (base == 0) base = 10;
  if (digits.empty() || digits.front() == '-') return std::nullopt;
  uint64_t magnitude = 0;
  const auto result =
      std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  if (result.ptr != digits.data() + digits.size()) return std::nullopt;
  if (result.ec == std::errc::result_out_of_range || magnitude > uint64_t{1} << 63 ||
      (magnitude == uint64_t{1} << 63 && !negative)) {
    too_large();
  }
  return negative ? static_cast<int64_t>(~magnitude + 1) : static_cast<int64_t>(magnitude);
}

std::optional<double> parse_number(std::string_view text) {
  std::string clean;
  if (!clean_number(text, clean)) return std::nullopt;
  std::string_view digits = clean;
  const bool negative = digits.front() == '-';
  if (negative || digits.front() == '+') digits.remove_prefix(1);
  if (digits.empty() || digits.front() == '-' || digits.front() == '+') return std::nullopt;
  std::string lower(digits);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  double value = 0;
  if (lower == "inf" || lower == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (lower == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (lower.find_first_not_of("0123456789.e+-") != std::string::npos) return std::nullopt;
    // from_chars leaves the value alone where it overflows or underflows; strtod gives what Python
    // gives. The process has the C locale.
    char* stop = nullptr;
    value = std::strtod(lower.c_str(), &stop);
    if (stop != lower.c_str() + lower.size() || stop == lower.c_str()) return std::nullopt;
  }
  return negative ? -value : value;
}

}  // namespace strata::text
