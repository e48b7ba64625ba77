#include "strata/server/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "strata/base/format.h"
#include "strata/server/json_numbers.h"
#include "strata/server/request_error.h"
#include "strata/text/grammar/compiled_grammar.h"
#include "strata/text/grammar/test_language.h"

namespace strata::server {
namespace {

using ::testing::HasSubstr;

text::Matcher matcher_of(const std::string& schema) {
  return text::Matcher(text::compile(json_schema_grammar(Json::parse(schema), "schema")));
}

void expect_texts(const std::string& schema, const std::vector<std::string>& valid,
                  const std::vector<std::string>& invalid) {
  const text::Matcher matcher = matcher_of(schema);
  for (const std::string& text : valid) {
    EXPECT_TRUE(text::testing::matches(matcher, text)) << text << " under " << schema;
    EXPECT_TRUE(Json::accept(text)) << text;
  }
  for (const std::string& text : invalid) {
    EXPECT_FALSE(text::testing::matches(matcher, text)) << text << " under " << schema;
  }
}

void expect_error(const std::string& schema, std::string_view param, std::string_view message,
                  ErrorCode code = ErrorCode::kUnsupported) {
  try {
    json_schema_grammar(Json::parse(schema), "schema");
    ADD_FAILURE() << "no error for " << schema;
  } catch (const RequestError& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_EQ(e.param(), param) << schema;
    EXPECT_THAT(e.what(), HasSubstr(message)) << schema;
  }
}

TEST(JsonSchema, types) {
  expect_texts("{}", {"1", "null", "[1,\"a\"]", "{\"a\":{}}"}, {"", "x"});
  expect_texts("true", {"1"}, {});
  expect_texts(R"({"type":"boolean"})", {"true", "false"}, {"null", "1"});
  expect_texts(R"({"type":["integer","null"]})", {"null", "-5", "0"}, {"1.5", "\"a\""});
  expect_texts(R"({"type":"number"})", {"1", "-1.5e3"}, {"\"1\"", "true"});
  expect_texts(R"({"type":"string"})", {"\"\"", R"("a\"\u00e9\n")"}, {"a", "\"\n\""});
  expect_texts(R"({"type":"object"})", {"{}", "{\"a\": [1]}"}, {"[]"});
  expect_texts(R"({"type":"array"})", {"[]", "[1, {}]"}, {"{}"});
}

TEST(JsonSchema, objects) {
  const std::string schema = R"({"type":"object","properties":{
      "a":{"type":"integer"},"b":{"type":"string"},"c":{"type":"boolean"}},
      "required":["b"],"additionalProperties":false})";
  expect_texts(schema,
               {R"({"b":"x"})", R"({"a":1,"b":"x"})", R"({"a": 1, "b": "x", "c": true})",
                R"({"b":"x", "c":false})"},
               {"{}", R"({"a":1})", R"({"b":"x",})", R"({"b":"x","a":1})", R"({"b":"x","d":1})",
                R"({"b":1})", R"({"b":"x" })", R"({,"b":"x"})", R"({"b":"x","b":"y"})"});
  expect_texts(R"({"properties":{"a":{},"b":{}}})",
               {"{}", R"({"a":1})", R"({"b":1})", R"({"a":1,"b":2})"}, {R"({"c":1})", "1"});
  expect_texts(R"({"type":"object","properties":{},"additionalProperties":false})", {"{}"},
               {R"({"a":1})"});
  expect_texts(R"({"type":"object","required":["z"]})", {R"({"z":[]})"}, {"{}", R"({"y":1})"});
}

TEST(JsonSchema, additional_properties_have_other_names) {
  const std::string schema = R"({"type":"object","properties":{"ab":{"type":"integer"},
      "a":{"type":"integer"},"é":{"type":"integer"}},
      "additionalProperties":{"type":"boolean"}})";
  expect_texts(schema,
               {"{}", R"({"x":true})", R"({"ab":1, "x":true, "abc":false})", R"({"a":1,"":true})",
                R"({"b":true})", R"({"e":true})", R"({"éé":true})", R"({"\"":true})"},
               {R"({"x":1})", R"({"a":true})", R"({"ab":true})", R"({"\u0061":true})",
                R"({"é":true})", R"({"x":true,"a":1})"});
  expect_texts(R"({"type":"object","additionalProperties":true})", {"{}", R"({"x":1,"y":null})"},
               {"[]"});
  expect_texts(R"({"additionalProperties":{"type":"integer"},"required":["q"]})",
               {R"({"q":1})", R"({"q":1,"r":2})"}, {"{}", R"({"q":"x"})", R"({"r":1})"});
}

TEST(JsonSchema, arrays) {
  expect_texts(R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3})",
               {"[1]", "[1, 2,3]"}, {"[]", "[1,2,3,4]", "[\"a\"]", "[1,]"});
  expect_texts(R"({"items":{"type":"null"},"maxItems":1})", {"[]", "[null]"}, {"[null,null]"});
  expect_texts(R"({"type":"array","maxItems":0})", {"[]"}, {"[1]"});
  expect_texts(R"({"prefixItems":[{"type":"integer"},{"type":"string"}],
                   "items":{"type":"null"}})",
               {"[]", "[1]", "[1,\"a\"]", "[1,\"a\",null,null]"}, {"[\"a\"]", "[1,null]", "[,]"});
  expect_texts(R"({"prefixItems":[{"type":"integer"},{"type":"string"}],"items":false,
                   "minItems":2})",
               {"[1,\"a\"]"}, {"[]", "[1]", "[1,\"a\",1]"});
  expect_texts(R"({"prefixItems":[{"type":"integer"}],"minItems":3,"maxItems":4})",
               {"[1,2,\"x\"]", "[1,2,3,4]"}, {"[1,2]", "[1,2,3,4,5]", "[\"x\",1,1]"});
  expect_texts(R"({"prefixItems":[{"type":"integer"},{"type":"null"}],"maxItems":1})",
               {"[]", "[1]"}, {"[1,null]"});
}

TEST(JsonSchema, values) {
  expect_texts(R"({"enum":["a",1,null,{"k":[1,2]}]})",
               {"\"a\"", "1", "null", R"({"k":[1,2]})", R"({"k": [1, 2]})"}, {"\"b\"", "2", "{}"});
  expect_texts(R"({"const":"x\n\"é"})", {R"("x\n\"é")"}, {"\"x\""});
  expect_texts(R"({"type":"string","enum":["a",1]})", {"\"a\""}, {"1"});
  expect_error(R"({"type":"null","enum":["a"]})", "schema", "no value",
               ErrorCode::kInvalidArgument);
}

TEST(JsonSchema, combinations) {
  expect_texts(R"({"anyOf":[{"type":"integer"},{"type":"null"}]})", {"1", "null"}, {"true"});
  expect_texts(R"({"allOf":[{"type":"integer"}]})", {"1"}, {"null"});
  expect_texts(R"({"oneOf":[{"type":"integer"},{"type":"string"},{"enum":[null,true]}]})",
               {"1", "\"a\"", "null"}, {"false"});
  expect_texts(R"({"oneOf":[
      {"type":"object","properties":{"kind":{"const":"a"},"x":{"type":"integer"}},
       "required":["kind","x"],"additionalProperties":false},
      {"type":"object","properties":{"kind":{"enum":["b","c"]}},"required":["kind"],
       "additionalProperties":false}]})",
               {R"({"kind":"a","x":1})", R"({"kind":"c"})"}, {R"({"kind":"a"})"});
  expect_error(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "schema.oneOf", "anyOf");
  expect_error(R"({"oneOf":[{"type":"string"},{"properties":{}}]})", "schema.oneOf", "anyOf");
  expect_error(R"({"oneOf":[{"properties":{"k":{"const":1}},"required":["k"]},
                            {"properties":{"k":{"const":2}},"required":["k"]}]})",
               "schema.oneOf", "anyOf");
  expect_error(R"({"allOf":[{},{}]})", "schema.allOf", "more than one");
  expect_error(R"({"anyOf":[{}],"type":"object"})", "schema", "type beside anyOf");
  expect_error(R"({"$ref":"#","minimum":1})", "schema", "minimum beside $ref");
}

TEST(JsonSchema, references_and_recursion) {
  const std::string tree = R"({"$defs":{"node":{"type":"object","properties":{
      "next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]},"v":{"type":"integer"}},
      "required":["next","v"],"additionalProperties":false}},"$ref":"#/$defs/node"})";
  expect_texts(tree, {R"({"next":null,"v":1})", R"({"next":{"next":null,"v":2}, "v":1})"},
               {R"({"v":1})", R"({"next":1,"v":1})"});
  expect_texts(R"({"type":"array","items":{"$ref":"#"}})", {"[]", "[[],[[]]]"}, {"[1]"});
  expect_texts(R"({"$defs":{"a/b~c":{"type":"null"}},"$ref":"#/$defs/a~1b~0c"})", {"null"}, {"1"});
  expect_texts(R"({"anyOf":[{"type":"null"},{"type":"array","items":{"$ref":"#/anyOf/0"}}]})",
               {"[null]", "null"}, {"[[]]"});
  expect_error(R"({"$ref":"#/$defs/x"})", "schema.$ref", "nowhere", ErrorCode::kInvalidArgument);
  expect_error(R"({"$ref":"http://x/y"})", "schema.$ref", "itself");
  expect_error(R"({"$ref":"#x"})", "schema.$ref", "anchors");
  EXPECT_THROW(matcher_of(R"({"$ref":"#"})"), Error);
  EXPECT_THROW(matcher_of(R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})"),
               Error);
}

TEST(JsonSchema, strings) {
  expect_texts(R"({"type":"string","minLength":2,"maxLength":3})",
               {"\"ab\"", "\"\xE4\xB8\xAD\xE6\x96\x87\"", R"("\n\u00e9a")", R"("\ud83d\ude00b")"},
               {"\"a\"", "\"abcd\"", R"("\ud83d\ude00")"});
  expect_texts(R"({"type":"string","pattern":"^[a-c]+$"})", {"\"abc\""}, {"\"\"", "\"abd\""});
  expect_texts(R"({"type":"string","pattern":"b"})", {"\"abc\"", R"("\"b\n")"}, {"\"ac\""});
  expect_texts(R"({"format":"date"})", {"\"2024-02-28\"", "\"1999-12-31\""},
               {"\"2024-02-30\"", "\"2024-13-01\"", "\"24-01-01\"", "\"2023-04-31\""});
  expect_texts(R"({"format":"date-time"})",
               {"\"2024-02-28T12:30:00Z\"", "\"2024-02-28T12:30:00.25+02:00\""},
               {"\"2024-02-28 12:30:00Z\""});
  expect_texts(R"({"format":"time"})", {"\"23:59:59Z\""}, {"\"24:00:00Z\"", "\"23:59\""});
  expect_texts(R"({"format":"uuid"})", {"\"123e4567-e89b-12d3-a456-426614174000\""},
               {"\"123e4567\""});
  expect_texts(R"({"format":"email"})", {"\"a.b@example.com\""}, {"\"a@b\"", "\"@example.com\""});
  expect_texts(R"({"format":"ipv4"})", {"\"192.168.0.255\""}, {"\"256.1.1.1\"", "\"1.1.1\""});
  expect_error(R"({"format":"color"})", "schema.format", "\"color\" is not supported");
  expect_error(R"({"type":"string","pattern":"a","minLength":1})", "schema", "beside");
  expect_error(R"x({"type":"string","pattern":"(?=a)"})x", "schema.pattern", "look-ahead");
  expect_error(R"({"type":"string","pattern":"("})", "schema.pattern", "not closed",
               ErrorCode::kInvalidArgument);
  expect_error(R"({"type":"string","minLength":3,"maxLength":2})", "schema", "below",
               ErrorCode::kInvalidArgument);
  expect_error(R"({"type":"string","minLength":-1})", "schema.minLength", "integer",
               ErrorCode::kInvalidArgument);
}

TEST(JsonSchema, what_is_not_supported_is_named) {
  for (const char* keyword :
       {"not", "if", "patternProperties", "minProperties", "contains", "dependentRequired",
        "propertyNames", "unevaluatedProperties", "$dynamicRef", "nullable"}) {
    expect_error(
        R"({"type":"object","properties":{"p":{"items":{")" + std::string(keyword) + R"(":1}}}})",
        "schema.properties.p.items", "\"" + std::string(keyword) + "\"");
  }
  expect_error(R"({"type":"array","uniqueItems":true})", "schema.uniqueItems", "not supported");
  expect_error(R"({"type":"number","multipleOf":2})", "schema.multipleOf", "not supported");
  expect_error(R"({"type":"array","items":[{}]})", "schema.items", "prefixItems");
  expect_error(R"({"type":"text"})", "schema.type", "must be one of", ErrorCode::kInvalidArgument);
  expect_error("3", "schema", "must be an object", ErrorCode::kInvalidArgument);
  expect_error("false", "schema", "no value", ErrorCode::kInvalidArgument);
  expect_error(R"({"type":"array","maxItems":2000000})", "schema", "limit");
  expect_texts(R"({"type":"array","uniqueItems":false,"title":"t","description":"d"})", {"[]"},
               {"1"});
}

// Every number text of a few digits: in the language exactly if it lies between the bounds.
void check_range(const NumberRange& range, bool integer) {
  text::Grammar grammar;
  const text::RuleId root = grammar.add_rule("root");
  const auto node = integer ? integers_in(grammar, range) : numbers_in(grammar, range);
  grammar.define(root, node ? *node : grammar.nothing());
  const text::Matcher matcher(text::compile(grammar));
  const auto inside = [&](double value) {
    if (range.low &&
        (range.low->inclusive ? value < range.low->value : value <= range.low->value)) {
      return false;
    }
    return !range.high ||
           (range.high->inclusive ? value <= range.high->value : value < range.high->value);
  };
  int n_inside = 0;
  for (int hundredths = -13000; hundredths <= 13000; hundredths += integer ? 100 : 1) {
    std::string text = std::to_string(std::abs(hundredths) / 100);
    const int rest = std::abs(hundredths) % 100;
    if (rest != 0) {
      text += "." + std::to_string(rest / 10);
      if (rest % 10 != 0) text += std::to_string(rest % 10);
    }
    if (hundredths < 0) text = "-" + text;
    const double value = std::stod(text);
    n_inside += inside(value);
    ASSERT_EQ(text::testing::matches(matcher, text), inside(value) && node.has_value())
        << text << " low " << (range.low ? range.low->value : NAN) << " high "
        << (range.high ? range.high->value : NAN);
  }
  if (n_inside > 0) {
    EXPECT_TRUE(node.has_value());
  }
  EXPECT_FALSE(node && text::testing::matches(matcher, "-0"));
  EXPECT_FALSE(text::testing::matches(matcher, "01"));
  EXPECT_FALSE(text::testing::matches(matcher, "1."));
}

TEST(JsonNumbers, ranges) {
  std::mt19937 random(2);
  const auto bound = [&](bool whole) -> std::optional<NumberBound> {
    if (random() % 5 == 0) return std::nullopt;
    const int value = static_cast<int>(random() % 24000) - 12000;
    return NumberBound{random() % 6 == 0 ? 0.0 : (whole ? value / 100 : value / 100.0),
                       random() % 2 == 0};
  };
  for (int round = 0; round < 60; ++round) {
    check_range({bound(true), bound(true)}, true);
    check_range({bound(false), bound(false)}, true);
    check_range({bound(round % 2 == 0), bound(round % 3 == 0)}, false);
    if (HasFatalFailure()) return;
  }
  check_range({NumberBound{0}, NumberBound{1}}, false);
  check_range({NumberBound{0, false}, NumberBound{1, false}}, false);
  check_range({NumberBound{5}, NumberBound{5}}, true);
  check_range({NumberBound{2.5}, NumberBound{2.5}}, false);
}

TEST(JsonNumbers, large_bounds) {
  text::Grammar grammar;
  EXPECT_TRUE(integers_in(grammar, {NumberBound{-9.3e18}, NumberBound{9.3e18}}));
  EXPECT_FALSE(integers_in(grammar, {NumberBound{1e30}, std::nullopt}));
  EXPECT_FALSE(integers_in(grammar, {std::nullopt, NumberBound{-1e30}}));
  EXPECT_FALSE(integers_in(grammar, {NumberBound{1.2}, NumberBound{1.8}}));
  EXPECT_THROW(integers_in(grammar, {NumberBound{1e17}, std::nullopt}), Error);
  EXPECT_THROW(numbers_in(grammar, {NumberBound{1e-9}, std::nullopt}), Error);
  EXPECT_THROW(numbers_in(grammar, {NumberBound{1e20}, std::nullopt}), Error);
}

// Texts made from the grammar are JSON with what the schema asks for.
TEST(JsonSchema, random_texts) {
  const Json schema = Json::parse(R"({"type":"object","properties":{
      "count":{"type":"integer","minimum":3,"maximum":112},
      "kind":{"enum":["one","two"]},
      "list":{"type":"array","items":{"type":"number","exclusiveMinimum":-1,"maximum":2.5},
              "minItems":1,"maxItems":4},
      "name":{"type":"string","minLength":1,"maxLength":5},
      "self":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},
      "required":["count","kind","self"],"additionalProperties":false})");
  const text::Grammar grammar = json_schema_grammar(schema, "schema");
  const text::Matcher matcher(text::compile(grammar));
  std::mt19937 random(3);
  text::testing::Sentences sentences(grammar, random);
  const std::function<void(const Json&)> check = [&](const Json& value) {
    ASSERT_TRUE(value.is_object());
    ASSERT_GE(value.at("count").get<int>(), 3);
    ASSERT_LE(value.at("count").get<int>(), 112);
    ASSERT_TRUE(value.at("kind") == "one" || value.at("kind") == "two");
    if (value.contains("list")) {
      ASSERT_GE(value["list"].size(), 1u);
      ASSERT_LE(value["list"].size(), 4u);
      for (const Json& number : value["list"]) {
        ASSERT_GT(number.get<double>(), -1);
        ASSERT_LE(number.get<double>(), 2.5);
      }
    }
    if (value.contains("name")) {
      ASSERT_FALSE(value["name"].get<std::string>().empty());
    }
    for (const auto& item : value.items()) {
      ASSERT_TRUE(schema["properties"].contains(item.key())) << item.key();
    }
    if (!value.at("self").is_null()) check(value["self"]);
  };
  for (int i = 0; i < 500; ++i) {
    const std::string text = sentences.make();
    ASSERT_TRUE(text::testing::matches(matcher, text)) << text;
    check(Json::parse(text));
    if (HasFatalFailure()) {
      ADD_FAILURE() << text;
      return;
    }
  }
}

std::string error_of(const Json& schema) {
  try {
    json_schema_grammar(schema, "schema");
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

// `n_ways` objects with `n_members` each, which only the last member tells apart.
Json one_of(int n_ways, int n_members) {
  Json ways;
  for (int way = 0; way < n_ways; ++way) {
    Json& one = ways.emplace_back(Json{{"type", "object"}});
    for (int i = 0; i < n_members; ++i) {
      const std::string name = format("member_{}", i);
      one["properties"][name] = Json{{"const", i + 1 < n_members ? 0 : way}};
      one["required"].push_back(name);
    }
  }
  return Json{{"oneOf", ways}};
}

// What is done for each name of a schema does not grow with their number, and what is done for each
// pair is bounded. Counted, since time depends on the machine.
TEST(JsonSchema, work_grows_with_the_size_or_is_refused) {
  constexpr int kNames = 10'000;
  Json schema = {{"anyOf", Json::array()}, {"$defs", Json::object()}};
  for (int i = 0; i < kNames; ++i) {
    const std::string name = format("definition_{}", i);
    schema["anyOf"].push_back({{"$ref", "#/$defs/" + name}});
    // Not by name, which looks at all of them.
    schema["$defs"].get_ref<Json::object_t&>().Json::object_t::Container::emplace_back(
        name, Json{{"type", "null"}});
  }
  text::WorkBudget budget = schema_budget();
  const size_t before = budget.left();
  const SchemaPart whole{"", &schema, "schema", Otherwise::kRefuse};
  json_schema_rules(schema, "schema", {&whole, 1}, {}, budget);
  EXPECT_LT(before - budget.left(), 20u * kNames);

  EXPECT_EQ(error_of(one_of(200, 10)), "");
  EXPECT_EQ(error_of(one_of(10, 200)), "");
  EXPECT_THAT(error_of(one_of(200, 400)), HasSubstr("too complex"));
  Json values = Json::array();
  for (int i = 0; i < 5000; ++i) values.push_back(format("value {}", i));
  Json others = values;
  for (Json& value : others) value = "other " + value.get<std::string>();
  EXPECT_THAT(error_of({{"oneOf", {{{"enum", values}}, {{"enum", others}}}}}),
              HasSubstr("too complex"));
}

// A name of a kilobyte is not copied into the path of everything below it.
TEST(JsonSchema, long_names_are_cut_in_messages) {
  Json schema = {{"not", {}}};
  for (int i = 0; i < 10; ++i)
    schema = Json{{"type", "object"}, {"properties", {{std::string(1000, 'n'), schema}}}};
  EXPECT_LT(error_of(schema).size(), 1500u);
}

#if !defined(__SANITIZE_ADDRESS__)
void compile_names_that_begin_alike() {
  Json schema = {{"type", "object"}, {"additionalProperties", {{"type", "null"}}}};
  Json::object_t& properties = (schema["properties"] = Json::object()).get_ref<Json::object_t&>();
  for (int i = 0; i < 2000; ++i)
    properties.Json::object_t::Container::emplace_back(std::string(185, 'n') + std::to_string(i),
                                                       Json{{"type", "null"}});
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE)) + (size_t{120} << 20);
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_AS, &limit);
  const std::string error = error_of(schema);
  std::fputs(error.c_str(), stderr);
  std::_Exit(error.empty() ? 0 : 1);
}

// They share their beginnings also while they are sorted: copies at each of 185 characters would
// take 270 MB.
TEST(JsonSchemaDeathTest, names_that_begin_alike_take_their_own_memory) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(compile_names_that_begin_alike(), ::testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace strata::server
