#include "strata/server/answer/answer_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "strata/base/format.h"
#include "strata/server/testing/test_scripts.h"
#include "strata/text/utf8_stream.h"

namespace strata::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = AnswerPart::Kind;
using testing::scripts;
using testing::weather_call;
using text::CallFormat;

std::shared_ptr<const Tools> some_tools() {
  const auto tool = [](const char* name, const char* parameters) {
    return Tool{name, "", std::make_shared<const Json>(Json::parse(parameters)), false};
  };
  return std::make_shared<const Tools>(
      Tools{tool("get_weather", R"({"type":"object","properties":{"city":{"type":"string"},
                          "days":{"type":"integer"}},"required":["city"]})"),
            tool("write_file",
                 R"({"properties":{"path":{"type":"string"},"content":{"type":"string"}}})"),
            tool("mixed", R"({"properties":{"n":{"type":"number"},"b":{"type":"boolean"},
                    "o":{"type":"object"},"l":{"type":"array"},"z":{"type":["string","null"]},
                    "e":{"enum":["1","2"]},"u":{},"r":{"$ref":"#/$defs/zip"},
                    "y":{"$ref":"#/$defs/tree"},"w":{"$ref":"#/no"}},
                    "$defs":{"zip":{"type":"string"},"tree":{"anyOf":[{"type":"array"},
                    {"$ref":"#/$defs/tree"},{"$ref":"#/$defs/tree"},{"$ref":"#/$defs/tree"}]}}})"),
            tool("none", "{}")});
}

AnswerFormat format_of(CallFormat calls, bool in_reasoning = false) {
  return {true, in_reasoning, calls, some_tools()};
}

// Parts of one kind as one; a call's arguments behind it.
struct Joined {
  std::string content, reasoning;
  std::vector<std::pair<std::string, std::string>> calls;
  bool operator==(const Joined&) const = default;
};

void PrintTo(const Joined& joined, std::ostream* out) {
  *out << "content <" << joined.content << "> reasoning <" << joined.reasoning << ">";
  for (const auto& [name, arguments] : joined.calls) *out << " " << name << arguments;
}

void join(const AnswerParts& parts, Joined& all) {
  for (const AnswerPart& part : parts) {
    EXPECT_FALSE(part.text.empty());
    if (part.kind == Kind::kContent) all.content += part.text;
    if (part.kind == Kind::kReasoning) all.reasoning += part.text;
    if (part.kind == Kind::kCall) all.calls.emplace_back(part.text, "");
    if (part.kind == Kind::kArguments) all.calls.back().second += part.text;
  }
}

Joined parse(const AnswerFormat& format, const std::vector<std::string>& pieces) {
  AnswerParser parser(format);
  text::Utf8Stream utf8;
  Joined all;
  for (const std::string& piece : pieces) join(parser.append(utf8.append(piece)), all);
  join(parser.append(utf8.finish()), all);
  join(parser.finish(), all);
  for (const auto& [name, arguments] : all.calls) {
    EXPECT_TRUE(nlohmann::json::accept(arguments)) << name << " " << arguments;
    EXPECT_THAT(arguments, ::testing::StartsWith("{"));
  }
  return all;
}

Joined xml(const std::string& text, bool in_reasoning = false) {
  return parse(format_of(CallFormat::kXml, in_reasoning), {text});
}
Joined json(const std::string& text) { return parse(format_of(CallFormat::kJson), {text}); }

const std::pair<std::string, std::string> kParis{"get_weather", R"({"city":"Paris"})"};

TEST(AnswerParser, F019_CallsWithMissingDoubledOrExtraTags) {
  const Joined good{"", "", {kParis}};
  EXPECT_EQ(xml(weather_call("Paris")), good);
  const std::string head = "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n";
  for (const char* tail :
       {"</parameter></parameter>\n</function>\n</tool_call>", "</parameter>\n</tool_call>",
        "</parameter>\n\n\n</function>\n</tool_call>\n", "</parameter>\n</function>",
        "</parameter>\n</function>\n", "</parameter>", "</function>\n</tool_call>", ""})
    EXPECT_EQ(xml(head + tail), good) << tail;
  EXPECT_EQ(xml("<tool_call><function=get_weather><parameter=city>Paris</parameter></function>"
                "</tool_call>"),
            good);
  // Text around a call is content; a missing parameter is for the client to judge.
  EXPECT_EQ(xml("So:\n\n" + weather_call("Paris") + "\nand on"),
            (Joined{"So:and on", "", {kParis}}));
  EXPECT_EQ(xml("<tool_call>\n<function=get_weather>\n</function>\n</tool_call>"),
            (Joined{"", "", {{"get_weather", "{}"}}}));
}

TEST(AnswerParser, F019_WhatIsNoCallStaysText) {
  for (const std::string text : {"<tool_call>\n<function=unknown>\n</function>\n</tool_call>",
                                 "<tool_call>", "<tool_cal", "<tool_call>{\"name\": 1}</tool_call>",
                                 "a <tool_call> b", "<tool_call>\n<function=get_weather",
                                 "<tool_call>\n<function=\n>", "  leading and trailing \n"})
    EXPECT_EQ(xml(text), (Joined{text, "", {}}));
  for (const std::string text :
       {"<tool_call>\n{\"name\": \"unknown\", \"arguments\": {}}\n</tool_call>",
        "<tool_call>\n{\"na", "<tool_call>\n[1]"})
    EXPECT_EQ(json(text), (Joined{text, "", {}}));
}

TEST(AnswerParser, F020_ClosingTagsInsideAValue) {
  const std::string content =
      "# How calls "
      "look\n```\n<tool_call>\n<function=get_weather>\n</parameter>\n</tool_call>\n```\n"
      "and inline </parameter></function> as well,\n</parameter> and then text\n";
  const Joined all =
      xml("<tool_call>\n<function=write_file>\n<parameter=path>\na.md\n</parameter>\n"
          "<parameter=content>\n" +
          content + "\n</parameter>\n</function>\n</tool_call>");
  ASSERT_EQ(all.calls.size(), 1u);
  const auto arguments = nlohmann::json::parse(all.calls[0].second);
  EXPECT_EQ(arguments["path"], "a.md");
  EXPECT_EQ(arguments["content"], content);
  EXPECT_EQ(all.content, "");
}

TEST(AnswerParser, F021_TwoCallsAndTypedParameters) {
  EXPECT_EQ(xml(weather_call("Paris") + "\n" + weather_call("Oslo")),
            (Joined{"", "", {kParis, {"get_weather", R"({"city":"Oslo"})"}}}));
  const auto value = [](const std::string& name, const std::string& text) {
    const Joined all = xml("<tool_call>\n<function=mixed>\n<parameter=" + name + ">\n" + text +
                           "\n</parameter>\n</function>\n</tool_call>");
    return all.calls.at(0).second;
  };
  EXPECT_EQ(value("n", "2.5"), R"({"n":2.5})");
  EXPECT_EQ(value("n", "many"), R"({"n":"many"})");
  EXPECT_EQ(value("b", "true"), R"({"b":true})");
  EXPECT_EQ(value("b", "True"), R"({"b":true})");
  EXPECT_EQ(value("o", "{\"z\": 1,\n\"a\": [2]}"), R"({"o":{"z":1,"a":[2]}})");
  EXPECT_EQ(value("l", "[1, \"2\"]"), R"({"l":[1,"2"]})");
  EXPECT_EQ(value("z", "null"), R"({"z":null})");
  EXPECT_EQ(value("z", "some"), R"({"z":"some"})");
  EXPECT_EQ(value("e", "1"), R"({"e":"1"})");
  EXPECT_EQ(value("u", "7"), R"({"u":7})");
  EXPECT_EQ(value("u", "\"quoted\""), R"({"u":"\"quoted\""})");
  EXPECT_EQ(value("unknown", "a\nb"), R"({"unknown":"a\nb"})");
  EXPECT_EQ(value("r", "12345"), R"({"r":"12345"})");
  EXPECT_EQ(value("y", "[1]"), R"({"y":[1]})");
  EXPECT_EQ(value("w", "7"), R"({"w":7})");
}

TEST(AnswerParser, F024_CallsInsideReasoningAndRightBehindIt) {
  EXPECT_EQ(xml("<think>\nhm\n" + weather_call("Paris")), (Joined{"", "hm", {kParis}}));
  EXPECT_EQ(xml("hm\n" + weather_call("Paris") + "\nmore\n</think>\n\nso", true),
            (Joined{"so", "hmmore", {kParis}}));
  EXPECT_EQ(xml("<think>\nhm\n</think>\n" + weather_call("Paris")), (Joined{"", "hm", {kParis}}));
  EXPECT_EQ(xml("<think>\n\n</think>\n\n" + weather_call("Paris")), (Joined{"", "", {kParis}}));
}

TEST(AnswerParser, F025_ReasoningThatNeverEnds) {
  EXPECT_EQ(xml("one two", true), (Joined{"", "one two", {}}));
  EXPECT_EQ(xml("<think>one two"), (Joined{"", "one two", {}}));
}

TEST(AnswerParser, JsonCalls) {
  const Joined good{"", "", {{"get_weather", R"({"city": "Paris", "days": 2})"}}};
  const std::string head =
      "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\", \"days\": 2";
  for (const char* tail : {"}}\n</tool_call>", "}}</tool_call>", "}}", "}", "", "}}\n</tool"})
    EXPECT_EQ(json(head + tail).calls, good.calls) << tail;
  EXPECT_EQ(json(head + "}}\n</tool_call>\n" + head + "}}\n</tool_call>").calls.size(), 2u);
  EXPECT_EQ(json("<tool_call>{\"name\":\"none\"}</tool_call>"), (Joined{"", "", {{"none", "{}"}}}));
  EXPECT_EQ(json("<tool_call>{\"name\":\"none\",\"parameters\":{}}</tool_call>"),
            (Joined{"", "", {{"none", "{}"}}}));
  // What breaks the rules of JSON is brought to an end.
  EXPECT_EQ(json("<tool_call>{\"name\":\"none\",\"arguments\":{\"a\":tru").calls[0].second,
            R"({"a":true})");
  EXPECT_EQ(json("<tool_call>{\"name\":\"none\",\"arguments\":{\"a\":\"x\\u00").calls[0].second,
            R"({"a":"x\u0000"})");
  EXPECT_EQ(json("<tool_call>{\"name\":\"none\",\"arguments\":{\"a\":[1,2}").calls[0].second,
            R"({"a":[1,2]})");
}

TEST(AnswerParser, ArgumentsOfAStringGoOutAsTheyCome) {
  AnswerParser parser(format_of(CallFormat::kXml));
  parser.append("<tool_call>\n<function=write_file>\n<parameter=content>\n");
  EXPECT_THAT(parser.append("line one\nline \"two\"\n"),
              ElementsAre(AnswerPart{Kind::kArguments, "line one\\nline \\\"two\\\""}));
  EXPECT_THAT(parser.append("</par"), ElementsAre());
  EXPECT_THAT(parser.append("t of it"),
              ElementsAre(AnswerPart{Kind::kArguments, "\\n</part of it"}));
}

// F-034 for calls and reasoning: whatever the cut, the joined stream is the whole answer.
TEST(AnswerParser, F034_TheSameForEveryCutAtEachByte) {
  size_t n_calls = 0;
  for (const std::string& text : scripts()) {
    for (const CallFormat calls : {CallFormat::kXml, CallFormat::kJson, CallFormat::kNone}) {
      const AnswerFormat format = format_of(calls, text.size() % 3 == 0);
      const Joined whole = parse(format, {text});
      n_calls += whole.calls.size();
      for (size_t cut = 1; cut < text.size(); ++cut)
        ASSERT_EQ(parse(format, {text.substr(0, cut), text.substr(cut)}), whole)
            << text << "\ncut at " << cut;
      std::vector<std::string> bytes;
      for (const char c : text) bytes.emplace_back(1, c);
      ASSERT_EQ(parse(format, bytes), whole) << text;
    }
  }
  EXPECT_GT(n_calls, 150u);
}

// Time does not grow faster than the answer.
TEST(AnswerParser, LongAnswersInSmallPieces) {
  AnswerParser parser(format_of(CallFormat::kXml));
  Joined all;
  join(parser.append("<tool_call>\n<function=mixed>\n<parameter=o>\n"), all);
  for (int i = 0; i < 100'000; ++i) join(parser.append("0123456789"), all);
  join(parser.finish(), all);
  EXPECT_GT(all.calls.at(0).second.size(), 1'000'000u);
  AnswerParser text(format_of(CallFormat::kXml));
  size_t n = 0;
  for (int i = 0; i < 100'000; ++i)
    for (const AnswerPart& part : text.append("< and <tool \n")) n += part.text.size();
  EXPECT_GT(n, 1'000'000u);
}

}  // namespace
}  // namespace strata::server
