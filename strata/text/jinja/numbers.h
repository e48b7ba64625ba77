#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "strata/text/value.h"

namespace strata::text {

// Numbers as Python has them, for booleans, integers and doubles. Integers have 64 bits here:
// results that do not fit are an Error (kInvalidArgument), as is a division by zero.

// The name Python gives to the type: "int", "str", "NoneType".
std::string_view type_name(const Value& value);

bool is_numeric(const Value& value);  // bool, integer or number
bool is_nan(const Value& value);
// Exact also between integers and doubles. Both must be numeric.
std::partial_ordering compare_numbers(const Value& a, const Value& b);
// Of a numeric value.
double to_double(const Value& value);
// Of a boolean or an integer.
std::optional<int64_t> to_integer(const Value& value);

enum class Arithmetic : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower
};
// Both must be numeric.
Value calculate(Arithmetic op, const Value& a, const Value& b);
Value negate(const Value& value);
Value absolute(const Value& value);
// Half to even on the exact decimal value, as Python's round(value, digits).
double round_to(double value, int64_t digits);
// Towards minus infinity if `up` is false. Errors: kInvalidArgument outside 64 bits.
int64_t truncated(double value);

// repr(float): the shortest digits that read back as the same value.
std::string number_text(double value);
// int(text, base) and float(text): surrounding blanks and single underscores are allowed.
// Empty if the text is no number. Errors: kInvalidArgument for integers above 64 bits.
std::optional<int64_t> parse_integer(std::string_view text, int base);
std::optional<double> parse_number(std::string_view text);

}  // namespace strata::text
