#include "strata/server/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "strata/server/request_error.h"

namespace strata::server {
namespace {

using ::testing::HasSubstr;

std::string repeated(std::string_view text, int n) {
  std::string result;
  for (int i = 0; i < n; ++i) result += text;
  return result;
}

void expect_refused(std::string_view text, const std::string& why) {
  try {
    parse_json(text);
    FAIL() << "accepted: " << text.substr(0, 60);
  } catch (const RequestError& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(e.what(), HasSubstr(why)) << text.substr(0, 60);
  }
}

TEST(Json, TakesWhatIsRight) {
  const Json value = parse_json(
      " {\"a\":[1,-2,3.5,true,false,null,\"\\u00e9\\ud83d\\ude00\"],\"b\":{},"
      "\"big\":18446744073709551615} ");
  EXPECT_EQ(value["a"].size(), 7u);
  EXPECT_TRUE(value["a"][0].is_number_integer());
  EXPECT_EQ(value["a"][6], "\xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_EQ(value["big"].get<uint64_t>(), 18446744073709551615ull);
  EXPECT_EQ(parse_json("5"), 5);
}

TEST(Json, F041_RefusesEverythingElse) {
  expect_refused("", "empty");
  expect_refused(" \n", "empty");
  expect_refused("{:", "not valid JSON");
  expect_refused("{\"a\":NaN}", "not valid JSON");
  expect_refused("{\"a\":1e400}", "out of range");
  expect_refused("{\"a\":1} x", "not valid JSON");
  expect_refused("{\"a\":1}{}", "not valid JSON");
  expect_refused("{\"a\":1,}", "not valid JSON");
  expect_refused("{'a':1}", "not valid JSON");
  expect_refused("{\"a\":01}", "not valid JSON");
  expect_refused("\xEF\xBB\xBF{}", "byte order mark");
  expect_refused(std::string_view("\xFF\xFE{\0}\0", 6), "UTF-16");
  expect_refused(std::string_view("{\0}\0", 4), "not valid JSON");
  expect_refused("{\"a\":\"\\ud800\"}", "not valid JSON");
  expect_refused("{\"a\":\"\\udc00\\ud800\"}", "not valid JSON");
  expect_refused("{\"a\":\"\xC3\"}", "not valid JSON");
  expect_refused("{\"a\":\"\xED\xA0\x80\"}", "not valid JSON");
  expect_refused(std::string_view("{\"a\":\"\0\"}", 9), "not valid JSON");
}

TEST(Json, F041_DuplicateKeysAreNamedByPath) {
  expect_refused("{\"a\":1,\"a\":2}", "a: the key is given twice");
  expect_refused("{\"m\":[{},{\"x\":{\"y\":1,\"y\":1}}]}", "m[1].x.y: the key");
}

TEST(Json, F135_DepthHasAFixedLimit) {
  EXPECT_NO_THROW(parse_json(repeated("[", 64) + repeated("]", 64)));
  for (const int depth : {65, 1000, 10'000, 1'000'000}) {
    expect_refused(repeated("[", depth), "nested too deep");
    expect_refused(repeated("{\"x\":", depth), "nested too deep");
    expect_refused("{\"tools\":" + repeated("[", depth) + repeated("]", depth) + "}",
                   "nested too deep");
  }
}

TEST(Json, DumpRepairsWhatIsNotUtf8) {
  EXPECT_EQ(dump({{"a", "\xC3"}}), "{\"a\":\"\xEF\xBF\xBD\"}");
}

TEST(Json, ToValueKeepsTypesAndOrigin) {
  const text::Value value = to_value(parse_json("{\"a\":[1,2.5,null,false],\"s\":\"<|im_end|>\"}"));
  const text::Map& map = value.as_map();
  const auto& items = map.find("a")->as_list().items();
  EXPECT_EQ(items[0].as_integer(), 1);
  EXPECT_EQ(items[1].as_number(), 2.5);
  EXPECT_TRUE(items[2].is_null());
  EXPECT_FALSE(items[3].as_bool());
  // F-014: all of it is content, which makes no special tokens.
  EXPECT_EQ(map.find("s")->as_text().content().size(), 1u);
  EXPECT_EQ(to_value(parse_json("18446744073709551615")).as_number(), 18446744073709551615.0);
}

}  // namespace
}  // namespace strata::server
