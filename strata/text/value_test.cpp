#include "strata/text/value.h"

#include <gtest/gtest.h>

#include <limits>

#include "strata/base/error.h"
#include "strata/text/jinja/numbers.h"

namespace strata::text {
namespace {

Value s(const char* text) { return Value::content(text); }

TEST(Value, a_map_keeps_the_order_of_insertion) {
  const Value map = Value::map(Value::Members{{"b", Value::integer(1)}, {"a", Value::integer(2)}});
  ASSERT_EQ(map.as_map().size(), 2u);
  EXPECT_EQ(map.as_map().entries()[0].first.as_string(), "b");
  EXPECT_EQ(map.as_map().find("a")->as_integer(), 2);
  EXPECT_EQ(map.as_map().find("c"), nullptr);
}

TEST(Value, a_repeated_key_keeps_its_first_place_and_its_last_value) {
  const Value map = Value::map(Value::Members{{"a", Value::integer(1)},
                                              {"b", Value::integer(2)},
                                              {"a", Value::integer(3)},
                                              {"b", Value::integer(4)},
                                              {"a", Value::integer(5)}});
  ASSERT_EQ(map.as_map().size(), 2u);
  EXPECT_EQ(map.as_map().entries()[0].first.as_string(), "a");
  EXPECT_EQ(map.as_map().find("a")->as_integer(), 5);
  EXPECT_EQ(map.as_map().find("b")->as_integer(), 4);
}

TEST(Value, keys_of_all_kinds) {
  const Value map = Value::map(Value::Entries{{Value(), s("null")},
                                              {Value::boolean(true), s("true")},
                                              {Value::number(1.5), s("1.5")},
                                              {Value::integer(-3), s("-3")},
                                              {s("1"), s("text")}});
  EXPECT_EQ(map.as_map().find(Value())->as_string(), "null");
  EXPECT_EQ(map.as_map().find(Value::integer(1))->as_string(), "true");
  EXPECT_EQ(map.as_map().find(Value::number(1.0))->as_string(), "true");
  EXPECT_EQ(map.as_map().find(Value::number(-3.0))->as_string(), "-3");
  EXPECT_EQ(map.as_map().find("1")->as_string(), "text");
  EXPECT_EQ(map.as_map().find(Value::list({})), nullptr);
  EXPECT_THROW(Value::map(Value::Entries{{Value::list({}), Value()}}), Error);
}

TEST(Value, depth_counts_lists_and_maps) {
  EXPECT_EQ(Value().depth(), 0);
  EXPECT_EQ(Value::list({}).depth(), 1);
  EXPECT_EQ(Value::list({Value::map(Value::Members{{"a", Value::list({})}})}).depth(), 3);
}

TEST(Numbers, print_as_python_prints_them) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(1.0), "1.0");
  EXPECT_EQ(number_text(-0.0), "-0.0");
  EXPECT_EQ(number_text(1e16), "1e+16");
  EXPECT_EQ(number_text(123456789012345680.0), "1.2345678901234568e+17");
  EXPECT_EQ(number_text(1e15), "1000000000000000.0");
  EXPECT_EQ(number_text(0.0001), "0.0001");
  EXPECT_EQ(number_text(0.00001), "1e-05");
  EXPECT_EQ(number_text(5e-324), "5e-324");
  EXPECT_EQ(number_text(std::numeric_limits<double>::infinity()), "inf");
}

TEST(Numbers, integers_and_doubles_compare_exactly) {
  const auto order = [](int64_t a, double b) {
    return compare_numbers(Value::integer(a), Value::number(b));
  };
  EXPECT_TRUE(order(9007199254740993, 9007199254740992.0) > 0);
  EXPECT_TRUE(order(std::numeric_limits<int64_t>::max(), 9223372036854775808.0) < 0);
  EXPECT_TRUE(order(std::numeric_limits<int64_t>::min(), -9223372036854775808.0) == 0);
  EXPECT_TRUE(order(-1, -1.5) > 0);
  EXPECT_TRUE(order(0, std::numeric_limits<double>::quiet_NaN()) ==
              std::partial_ordering::unordered);
}

TEST(Numbers, leaving_64_bits_is_an_error) {
  const Value least = Value::integer(std::numeric_limits<int64_t>::min());
  EXPECT_THROW(negate(least), Error);
  EXPECT_THROW(absolute(least), Error);
  EXPECT_THROW(calculate(Arithmetic::kFloorDivide, least, Value::integer(-1)), Error);
  EXPECT_EQ(calculate(Arithmetic::kModulo, least, Value::integer(-1)).as_integer(), 0);
  EXPECT_THROW(calculate(Arithmetic::kPower, Value::integer(3), Value::integer(41)), Error);
  EXPECT_EQ(
      calculate(Arithmetic::kPower, Value::integer(-1), Value::integer(1'000'001)).as_integer(),
      -1);
  EXPECT_THROW(truncated(1e19), Error);
  EXPECT_EQ(parse_integer("-9223372036854775808", 10), std::numeric_limits<int64_t>::min());
  EXPECT_THROW(parse_integer("9223372036854775808", 10), Error);
}

}  // namespace
}  // namespace strata::text
