// Tools, forms of answers, reasoning and log-probabilities through a real server with a fake
// engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "strata/base/format.h"
#include "strata/server/testing/test_server.h"
#include "strata/text/grammar/gbnf.h"
#include "strata/text/grammar/matcher.h"

namespace strata::server {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::Reply;
using testing::TestServer;

constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kTools =
    R"([{"type":"function","function":{"name":"get_weather","description":"Weather.","parameters":
    {"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,
    "maximum":9}},"required":["city"]}}},{"type":"function","function":{"name":"a.b-c_d"}}])";
const std::string kCall =
    "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n"
    "2\n</parameter>\n</function>\n</tool_call>";

std::string chat(const std::string& more) {
  return R"({"messages":[{"role":"user","content":"hi"}],)" + more + "}";
}
std::string with_tools(const std::string& more = "") {
  return chat("\"tools\":" + std::string(kTools) + more);
}

bool may_be(const std::string& gbnf, const std::string& text) {
  text::Matcher matcher(text::compile(text::parse_gbnf(gbnf)));
  return matcher.accept(text) && matcher.may_end();
}

// Whole and streamed, the same message.
json message_of(TestServer& server, const std::string& more, std::string* finish = nullptr) {
  const json whole = json::parse(server.post(kChat, with_tools(more)).body);
  json message = whole["choices"][0]["message"];
  json joined = {{"role", ""}, {"content", ""}};
  std::string reason;
  for (const std::string& data :
       server.post(kChat, with_tools(more + ",\"stream\":true")).events()) {
    if (data == "[DONE]") continue;
    const json choice = json::parse(data)["choices"][0];
    if (!choice["finish_reason"].is_null()) reason += choice["finish_reason"].get<std::string>();
    for (const auto& [name, value] : choice["delta"].items()) {
      if (name != "tool_calls") {
        joined[name] = joined.value(name, "") + value.get<std::string>();
        continue;
      }
      for (const json& call : value) {
        json& calls = joined["tool_calls"];
        if (call.contains("id")) {
          EXPECT_EQ(call["index"], calls.size());
          calls.push_back(
              {{"id", call["id"]}, {"type", call["type"]}, {"function", call["function"]}});
        } else {
          std::string& text =
              calls[call["index"].get<size_t>()]["function"]["arguments"].get_ref<std::string&>();
          text += call["function"]["arguments"].get<std::string>();
        }
      }
    }
  }
  EXPECT_EQ(reason, whole["choices"][0]["finish_reason"]);
  EXPECT_EQ(joined["role"], "assistant");
  EXPECT_EQ(joined["content"], message["content"].is_null() ? json("") : message["content"]);
  EXPECT_EQ(joined.value("reasoning_content", ""), message.value("reasoning_content", ""));
  EXPECT_EQ(joined.value("tool_calls", json()).size(), message.value("tool_calls", json()).size());
  for (size_t i = 0; i < joined.value("tool_calls", json()).size(); ++i)
    EXPECT_EQ(joined["tool_calls"][i]["function"], message["tool_calls"][i]["function"]);
  if (finish != nullptr) *finish = reason;
  return message;
}

TEST(ToolCalls, F021_F044_CallsStreamedAndWhole) {
  TestServer server;
  std::vector<std::string> bytes;
  for (const char c : "Let me see.\n" + kCall + "\n" + kCall) bytes.emplace_back(1, c);
  server.engine.answer_with(bytes);
  std::string finish;
  const json message = message_of(server, "", &finish);
  EXPECT_EQ(finish, "tool_calls");
  EXPECT_EQ(message["content"], "Let me see.");
  ASSERT_EQ(message["tool_calls"].size(), 2u);
  for (const json& call : message["tool_calls"]) {
    EXPECT_EQ(call["type"], "function");
    EXPECT_EQ(call["function"]["name"], "get_weather");
    EXPECT_EQ(json::parse(call["function"]["arguments"].get<std::string>()),
              json::parse(R"({"city":"Paris","days":2})"));
  }
  const json next = message_of(server, "");
  EXPECT_NE(message["tool_calls"][0]["id"], message["tool_calls"][1]["id"]);
  EXPECT_NE(message["tool_calls"][0]["id"], next["tool_calls"][0]["id"]);
  // Alone, content is null.
  server.engine.answer_with({kCall});
  EXPECT_TRUE(message_of(server, "")["content"].is_null());
}

TEST(ToolCalls, F019_F025_WhatIsNoCallAndWhatIsCut) {
  TestServer server;
  std::string finish;
  server.engine.answer_with({"<tool_call>\n<function=other>\n</function>\n</tool_call>"});
  EXPECT_EQ(message_of(server, "", &finish)["content"],
            "<tool_call>\n<function=other>\n</function>\n</tool_call>");
  EXPECT_EQ(finish, "stop");
  server.engine.answer_with({"<think>", "so ", "far"}, wire::Reason::kLength);
  const json message = message_of(server, "", &finish);
  EXPECT_EQ(message["reasoning_content"], "so far");
  EXPECT_EQ(message["content"], "");
  EXPECT_EQ(finish, "length");
}

TEST(ToolCalls, F043_EachChoice) {
  TestServer server;
  server.engine.answer_with({kCall});
  size_t n = 0;
  const auto grammar = [&](const std::string& more) {
    const Reply reply = server.post(kChat, with_tools(more));
    EXPECT_EQ(reply.status, 200) << reply.body;
    return server.engine.wait_for_submit(++n).grammar;
  };
  EXPECT_EQ(grammar(""), "");
  EXPECT_EQ(server.frontend.last().tools.size(), 2u);
  EXPECT_EQ(grammar(",\"tool_choice\":\"auto\""), "");
  // With none the model does not know of tools, and nothing is a call.
  EXPECT_EQ(grammar(",\"tool_choice\":\"none\""), "");
  EXPECT_TRUE(server.frontend.last().tools.empty());
  const json none = json::parse(server.post(kChat, with_tools(",\"tool_choice\":\"none\"")).body);
  EXPECT_EQ(none["choices"][0]["message"]["content"], kCall);
  ++n;

  const std::string required = grammar(",\"tool_choice\":\"required\"");
  EXPECT_TRUE(may_be(required, kCall));
  EXPECT_TRUE(may_be(required, kCall + "\n" + kCall));
  EXPECT_TRUE(may_be(required, "<tool_call>\n<function=a.b-c_d>\n</function>\n</tool_call>"));
  EXPECT_FALSE(may_be(required, "text"));
  EXPECT_FALSE(may_be(required, "<tool_call>\n<function=get_weather>\n</function>\n</tool_call>"));
  std::string bad = kCall;
  bad.replace(bad.find("2\n"), 1, "0");
  EXPECT_FALSE(may_be(required, bad));
  const std::string one = grammar(",\"tool_choice\":\"required\",\"parallel_tool_calls\":false");
  EXPECT_TRUE(may_be(one, kCall));
  EXPECT_FALSE(may_be(one, kCall + "\n" + kCall));
  const std::string named =
      grammar(",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"a.b-c_d\"}}");
  EXPECT_FALSE(may_be(named, kCall));
  EXPECT_TRUE(may_be(named, "<tool_call>\n<function=a.b-c_d>\n</function>\n</tool_call>"));

  for (const auto& [choice, param] : std::vector<std::pair<std::string, std::string>>{
           {"\"maybe\"", "tool_choice"},
           {"5", "tool_choice"},
           {R"({"type":"function","function":{"name":"no"}})", "tool_choice.function.name"},
           {R"({"type":"function"})", "tool_choice.function"},
           {R"({"type":"allowed_tools"})", "tool_choice.type"}}) {
    const Reply reply = server.post(kChat, with_tools(",\"tool_choice\":" + choice));
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(json::parse(reply.body)["error"]["param"], param);
  }
}

TEST(ToolCalls, F043_NamesAndNumbersOfTools) {
  TestServer server;
  server.engine.answer_with({"a"});
  const auto status = [&](const std::string& tools) {
    return server.post(kChat, chat("\"tools\":" + tools)).status;
  };
  const auto named = [](const std::string& name) {
    return R"({"type":"function","function":{"name":")" + name + "\"}}";
  };
  for (const char* name : {"f", "a.b", "a-b", "a_b", "\xC3\xA9t\xC3\xA9", "x1"})
    EXPECT_EQ(status("[" + named(name) + "]"), 200) << name;
  for (const std::string& name :
       {std::string(), std::string("a b"), std::string("a>b"), std::string("a\\\"b"),
        std::string("a\\nb"), std::string(129, 'x')})
    EXPECT_EQ(status("[" + named(name) + "]"), 400) << name;
  EXPECT_EQ(status("[" + named("f") + "," + named("f") + "]"), 400);
  EXPECT_EQ(status("[]"), 200);
  EXPECT_EQ(status(R"([{"type":"web_search"}])"), 400);
  std::string many;
  for (int i = 0; i < 64; ++i) many += (i ? "," : "") + named(format("f{}", i));
  EXPECT_EQ(status("[" + many + "]"), 200);
  EXPECT_EQ(server.frontend.last().tools.size(), 64u);
}

TEST(ToolCalls, ATemplateWithoutAPlaceForToolsRefusesThem) {
  TestServer server;
  server.frontend.calls = text::CallFormat::kNone;
  EXPECT_EQ(json::parse(server.post(kChat, with_tools()).body)["error"]["param"], "tools");
  server.engine.answer_with({"a"});
  EXPECT_EQ(server.post(kChat, with_tools(",\"tool_choice\":\"none\"")).status, 200);
}

// Whatever a description holds: it reaches the template, and the grammar stays the same.
TEST(ToolCalls, F029_DescriptionsAreData) {
  TestServer server;
  server.engine.answer_with({kCall});
  std::string first;
  size_t n = 0;
  for (const std::string& text :
       {std::string("plain"), std::string("\"quotes\" \\ {{ x }} {% raw %} %s"),
        std::string("\n(?:[a-z]+)* \xF0\x9F\x98\x80 \xD0\x9F"), std::string(100'000, 'x')}) {
    json tool = json::parse(kTools)[0];
    tool["function"]["description"] = text;
    tool["function"]["parameters"]["properties"]["city"]["description"] = text;
    tool["function"]["parameters"]["properties"]["city"]["maxLength"] = 2000;
    const json body = {{"messages", {{{"role", "user"}, {"content", "\xD0\x9F"}}}},
                       {"tools", {tool}},
                       {"tool_choice", "required"},
                       {"max_tokens", 5}};
    EXPECT_EQ(server.post(kChat, body.dump()).status, 200);
    const std::string grammar = server.engine.wait_for_submit(++n).grammar;
    if (first.empty()) first = grammar;
    EXPECT_EQ(grammar, first);
    const auto value = server.frontend.last().tools.at(0);
    const auto* function = value.as_map().find("function");
    EXPECT_EQ(function->as_map().find("description")->as_string(), text);
  }
}

TEST(ToolCalls, StrictToolsHoldTheirCallsToTheSchemaAndLeaveTextFree) {
  TestServer server;
  server.engine.answer_with({"a"});
  json tools = json::parse(kTools);
  tools[0]["function"]["strict"] = true;
  EXPECT_EQ(server.post(kChat, chat("\"tools\":" + tools.dump())).status, 200);
  const std::string grammar = server.engine.wait_for_submit(1).grammar;
  EXPECT_TRUE(may_be(grammar, "any < text\n<tool_"));
  EXPECT_TRUE(may_be(grammar, ""));
  EXPECT_TRUE(may_be(grammar, "So:\n" + kCall));
  EXPECT_FALSE(may_be(grammar, "So:\n<tool_call>\n<function=no>"));
  tools[0]["function"]["parameters"]["properties"]["days"]["multipleOf"] = 3;
  const Reply reply = server.post(kChat, chat("\"tools\":" + tools.dump()));
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(json::parse(reply.body)["error"]["param"],
            "tools[0].function.parameters.properties.days.multipleOf");
}

TEST(ToolCalls, F043_StringsOfXmlCallsAreHeldToTheirSchema) {
  TestServer server;
  server.engine.answer_with({kCall});
  size_t n = 0;
  const auto allows = [&](const std::string& schema, const std::string& value) {
    const std::string tools =
        R"("tool_choice":"required","tools":[{"type":"function","function":{"name":"f",)"
        R"("parameters":{"type":"object","required":["x"],"$defs":{"zip":{"type":"string",)"
        R"("pattern":"^[0-9]{5}$"}},"properties":{"x":)" +
        schema + "}}}}]";
    const Reply reply = server.post(kChat, chat(tools));
    EXPECT_EQ(reply.status, 200) << reply.body;
    return may_be(server.engine.wait_for_submit(++n).grammar,
                  "<tool_call>\n<function=f>\n<parameter=x>\n" + value +
                      "\n</parameter>\n</function>\n</tool_call>");
  };
  const std::string zip = R"({"type":"string","pattern":"^[0-9]{5}$"})";
  const std::string part = R"({"type":"string","pattern":"\\.$"})";
  for (const std::string& schema : {zip, std::string(R"({"$ref":"#/$defs/zip"})")}) {
    EXPECT_TRUE(allows(schema, "01234")) << schema;
    for (const char* bad : {"0123", "012345", "\"01234\"", "01234\n", ""})
      EXPECT_FALSE(allows(schema, bad)) << schema << bad;
  }
  EXPECT_TRUE(allows(part, "a \"quoted\" <b> \\."));
  EXPECT_FALSE(allows(part, "two\nlines."));
  EXPECT_FALSE(allows(part, "no end"));
  const std::string day = R"({"type":"string","format":"date"})";
  EXPECT_TRUE(allows(day, "2026-01-31"));
  EXPECT_FALSE(allows(day, "2026-02-31"));
  const std::string name = R"({"type":"string","minLength":2,"maxLength":4})";
  for (const char* good : {"ab", "<b>x", "äöüß"}) EXPECT_TRUE(allows(name, good)) << good;
  for (const char* bad : {"a", "abcde", "a\nb"}) EXPECT_FALSE(allows(name, bad)) << bad;
  const std::string text = R"({"type":"string","maxLength":300})";
  EXPECT_TRUE(allows(text, "two\nlines"));
  EXPECT_FALSE(allows(text, std::string(301, 'x')));
  const std::string some = R"({"type":"string","minLength":3})";
  EXPECT_TRUE(allows(some, "abc\n<p>"));
  EXPECT_FALSE(allows(some, "ab"));
  // What cannot be held to is any text, and refused where the tool is strict.
  const std::string both = R"({"type":"string","pattern":"a","maxLength":2})";
  EXPECT_TRUE(allows(both, "whatever"));
  EXPECT_TRUE(allows(R"({"type":"string","maxLength":2000000})", "whatever"));
  EXPECT_TRUE(allows(R"({"type":["string","integer"],"maxLength":2})", "whatever"));
  const Reply refused =
      server.post(kChat, chat(R"("tools":[{"type":"function","function":{"name":"f","strict":true,)"
                              R"("parameters":{"type":"object","properties":{"x":)" +
                              both + "}}}}]"));
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(json::parse(refused.body)["error"]["param"],
            "tools[0].function.parameters.properties.x");
}

// Fifteen kilobytes of a request must not become a grammar of eighty megabytes: what the parameters
// of a tool share is written once, and the whole is held to what is read back.
TEST(ToolCalls, WhatAFewWordsOfASchemaBecomeIsBounded) {
  TestServer server;
  server.engine.answer_with({"a"});
  const auto ask = [&](int n_classes, int n_parameters, int n_tools = 1) {
    std::string pattern;
    for (int i = 0; i < n_classes; ++i) pattern += "\\S";
    json tools;
    for (int t = 0; t < n_tools; ++t) {
      json function = {{"name", format("f{}", t)},
                       {"parameters", {{"type", "object"}, {"properties", json::object()}}}};
      function["parameters"]["$defs"]["a"] = {{"type", "string"}, {"pattern", pattern}};
      for (int i = 0; i < n_parameters; ++i)
        function["parameters"]["properties"][format("p{}", i)] = {
            {"type", "array"}, {"items", {{"$ref", "#/$defs/a"}}}};
      tools.push_back({{"type", "function"}, {"function", function}});
    }
    return server.post(kChat, chat("\"tool_choice\":\"required\",\"tools\":" + tools.dump()));
  };
  for (const Reply& reply : {ask(4000, 30), ask(40, 1, 100)}) {
    EXPECT_EQ(reply.status, 400);
    EXPECT_THAT(reply.body, HasSubstr("the tool f"));
    EXPECT_THAT(json::parse(reply.body)["error"]["param"].get<std::string>(),
                ::testing::MatchesRegex("tools\\[[0-9]+\\].function.parameters"));
  }
  EXPECT_EQ(ask(40, 30).status, 200);
  const std::string grammar = server.engine.wait_for_submit(1).grammar;
  EXPECT_LT(grammar.size(), 40'000u);
  const auto call = [](const std::string& value) {
    return "<tool_call>\n<function=f0>\n<parameter=p7>\n" + value +
           "\n</parameter>\n</function>\n</tool_call>";
  };
  EXPECT_TRUE(may_be(grammar, call("[\"" + std::string(40, 'x') + "\"]")));
  EXPECT_FALSE(may_be(grammar, call("[\"x\"]")));
}

// References lead into the schema of the whole tool; what of it cannot be held to lets any value
// pass, and the rest holds.
TEST(ToolCalls, ReferencesLeadIntoTheWholeTool) {
  TestServer server;
  server.engine.answer_with({"a"});
  const auto grammar = [&](size_t n, bool strict) {
    json function = json::parse(R"({"name":"f","parameters":{"type":"object","properties":{
        "n":{"type":"integer","maximum":5},"m":{"type":"array","items":{"$ref":"#/properties/n"}},
        "x/y":{"type":"array","items":{"$ref":"#/$defs/odd"}}},
        "$defs":{"odd":{"type":"integer","multipleOf":3}}}})");
    function["strict"] = strict;
    const Reply reply =
        server.post(kChat, chat("\"tool_choice\":\"required\",\"tools\":" +
                                json{{{"type", "function"}, {"function", function}}}.dump()));
    EXPECT_EQ(reply.status, strict ? 400 : 200) << reply.body;
    if (strict) {
      EXPECT_EQ(json::parse(reply.body)["error"]["param"],
                "tools[0].function.parameters.$defs.odd.multipleOf");
      return std::string();
    }
    return server.engine.wait_for_submit(n).grammar;
  };
  const auto call = [](const std::string& name, const std::string& value) {
    return "<tool_call>\n<function=f>\n<parameter=" + name + ">\n" + value +
           "\n</parameter>\n</function>\n</tool_call>";
  };
  const std::string held = grammar(1, false);
  EXPECT_TRUE(may_be(held, call("m", "[5]")));
  EXPECT_FALSE(may_be(held, call("m", "[6]")));
  EXPECT_TRUE(may_be(held, call("x/y", "[3, \"any\"]")));
  EXPECT_FALSE(may_be(held, call("x/y", "3")));
  grammar(1, true);
}

// What is written must be read back as the same name, and an object that names no members takes
// any.
TEST(ToolCalls, NamesOfParametersAndArgumentsWithoutNames) {
  TestServer server;
  server.engine.answer_with({"a"});
  const auto ask = [&](const std::string& parameters) {
    return server.post(kChat, chat(R"("tool_choice":"required","tools":[{"type":"function",
        "function":{"name":"f","parameters":)" +
                                   parameters + "}}]"));
  };
  for (const char* name : {"a>b", "<a", "a\\nb", " a", "a ", ""}) {
    const Reply reply =
        ask(R"({"type":"object","properties":{")" + std::string(name) + R"(":{"type":"string"}}})");
    EXPECT_EQ(reply.status, 400) << name;
    EXPECT_THAT(reply.body, HasSubstr("tools[0].function.parameters.properties")) << name;
  }
  const std::string none = "<tool_call>\n<function=f>\n</function>\n</tool_call>";
  const std::string some =
      "<tool_call>\n<function=f>\n<parameter=any.name>\n[1]\n</parameter>\n<parameter=b>\ntext\n"
      "</parameter>\n</function>\n</tool_call>";
  size_t n = 0;
  const auto grammar = [&](const std::string& parameters) {
    EXPECT_EQ(ask(parameters).status, 200);
    return server.engine.wait_for_submit(++n).grammar;
  };
  for (const char* free : {R"({"type":"object"})", R"({"type":"object","additionalProperties":{}})",
                           R"({"properties":{},"additionalProperties":true})"}) {
    const std::string held = grammar(free);
    EXPECT_TRUE(may_be(held, some)) << free;
    EXPECT_TRUE(may_be(held, none)) << free;
  }
  for (const char* empty :
       {"{}", R"({"type":"object","properties":{}})", R"({"additionalProperties":false})"}) {
    const std::string held = grammar(empty);
    EXPECT_FALSE(may_be(held, some)) << empty;
    EXPECT_TRUE(may_be(held, none)) << empty;
  }
  const std::string asked = grammar(R"({"required":["b"]})");
  EXPECT_FALSE(may_be(asked, none));
  EXPECT_TRUE(may_be(asked,
                     "<tool_call>\n<function=f>\n<parameter=b>\ntext\n</parameter>\n"
                     "</function>\n</tool_call>"));
}

TEST(ToolCalls, JsonCallsAreForcedAsWell) {
  TestServer server;
  server.frontend.calls = text::CallFormat::kJson;
  server.engine.answer_with({"<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": ",
                             "\"Paris\"}}\n</tool_call>"});
  const json message = message_of(server, ",\"tool_choice\":\"required\"");
  EXPECT_EQ(message["tool_calls"][0]["function"]["arguments"], R"({"city": "Paris"})");
  const std::string grammar = server.engine.wait_for_submit(1).grammar;
  EXPECT_TRUE(may_be(grammar,
                     "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
                     "\"x\"}}\n</tool_call>"));
  EXPECT_FALSE(may_be(grammar,
                      "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n"
                      "</tool_call>"));
}

TEST(Forms, F042_SchemasAreEnforcedOrRefused) {
  TestServer server;
  server.engine.answer_with({"{}"});
  size_t n = 0;
  const auto ask = [&](const std::string& schema) {
    return server.post(kChat, chat("\"response_format\":{\"type\":\"json_schema\",\"json_schema\":"
                                   "{\"name\":\"x\",\"strict\":true,\"schema\":" +
                                   schema + "}}"));
  };
  const auto grammar = [&](const std::string& schema) {
    const Reply reply = ask(schema);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return server.engine.wait_for_submit(++n).grammar;
  };
  EXPECT_TRUE(may_be(grammar("{}"), "[1,{\"a\":null}]"));
  const std::string list = grammar(R"({"type":"array","items":{"type":"integer"}})");
  EXPECT_TRUE(may_be(list, "[1, 2]"));
  EXPECT_FALSE(may_be(list, "{}"));
  // In the order of the schema, which is not that of the alphabet.
  const std::string ordered = grammar(
      R"({"type":"object","properties":{"z":{"type":"null"},"a":{"type":"null"}},"required":["z","a"]})");
  EXPECT_TRUE(may_be(ordered, R"({"z":null,"a":null})"));
  EXPECT_FALSE(may_be(ordered, R"({"a":null,"z":null})"));
  const std::string tree = grammar(
      R"({"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"c":{"type":"array","items":{"$ref":"#/$defs/t"}}},"required":["c"],"additionalProperties":false}}})");
  EXPECT_TRUE(may_be(tree, R"({"c":[{"c":[]}]})"));
  std::string properties;
  for (int i = 0; i < 1000; ++i)
    properties += (i ? "," : "") + format("\"p{}\":{{\"type\":\"null\"}}", i);
  EXPECT_FALSE(grammar("{\"type\":\"object\",\"properties\":{" + properties + "}}").empty());
  for (const char* bad : {R"({"type":"string","pattern":"("})",
                          R"({"$ref":"https://example.com/x"})", R"({"type":"thing"})", "5",
                          R"({"not":{}})", R"({"type":"object","patternProperties":{"a":{}}})"}) {
    const Reply reply = ask(bad);
    EXPECT_EQ(reply.status, 400) << bad;
    EXPECT_THAT(reply.body, HasSubstr("response_format.json_schema.schema")) << bad;
  }
  const Reply any = server.post(kChat, chat("\"response_format\":{\"type\":\"json_object\"}"));
  EXPECT_EQ(any.status, 200);
  const std::string object = server.engine.wait_for_submit(++n).grammar;
  EXPECT_TRUE(may_be(object, "{\"a\": [true]}"));
  EXPECT_FALSE(may_be(object, "[]"));
}

TEST(Forms, GrammarsAndPatterns) {
  TestServer server;
  server.engine.answer_with({"a"});
  for (const char* path : {kChat, "/v1/completions"}) {
    const auto post = [&](const std::string& more) {
      return server.post(
          path, R"({"messages":[{"role":"user","content":"hi"}],"prompt":"hi",)" + more + "}");
    };
    EXPECT_EQ(post(R"("grammar":"root ::= \"yes\" | \"no\"")").status, 200);
    EXPECT_EQ(post(R"("regex":"[a-c]{2}")").status, 200);
    for (const char* bad : {R"("grammar":"root ::= (")", R"("grammar":"a ::= \"b\"")",
                            R"("regex":"(")", R"("regex":"(?=a)b")", R"("grammar":5)"})
      EXPECT_EQ(post(bad).status, 400) << bad;
    EXPECT_EQ(post(R"("grammar":"root ::= \"a\"","regex":"b")").status, 400);
  }
  EXPECT_TRUE(may_be(server.engine.wait_for_submit(1).grammar, "yes"));
  EXPECT_FALSE(may_be(server.engine.wait_for_submit(1).grammar, "maybe"));
  EXPECT_TRUE(may_be(server.engine.wait_for_submit(2).grammar, "ab"));
  // A grammar has its size by what the client sent, in any script.
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "\xE4\xB8\xAD";
  EXPECT_EQ(server.post(kChat, chat("\"grammar\":\"root ::= \\\"" + text + "\\\"\"")).status, 200);
  EXPECT_TRUE(may_be(server.engine.wait_for_submit(5).grammar, text));
  std::string wide = "root ::= ";
  for (int i = 0; i < 90'000; ++i) wide += format("a{} ", i % 100);
  for (int i = 0; i < 100; ++i) wide += format("\\na{} ::= [a]", i);
  const Reply longer = server.post(kChat, chat("\"grammar\":\"" + wide + "\""));
  EXPECT_EQ(longer.status, 400);
  EXPECT_THAT(longer.body, HasSubstr(format("of {} bytes", wide.size() - 100)));
  EXPECT_THAT(longer.body, HasSubstr("1048576 bytes to write"));
  // What the engine finds when it compiles concerns the field.
  server.engine.set_script({wire::Failed{ErrorCode::kUnsupported, "too large"}});
  const Reply reply = server.post(kChat, chat(R"("grammar":"root ::= \"a\"")"));
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(json::parse(reply.body)["error"]["param"], "grammar");
}

TEST(Reasoning, F026_F027_SwitchesAndBudgets) {
  TestServer server;
  server.engine.answer_with({"a"});
  size_t n = 0;
  const auto submit = [&](const std::string& more) {
    EXPECT_EQ(server.post(kChat, chat(more)).status, 200);
    return server.engine.wait_for_submit(++n);
  };
  const auto thinks = [&] {
    for (const auto& [name, value] : server.frontend.last().variables)
      if (name == "enable_thinking") return value.as_bool() ? 1 : 0;
    return -1;
  };
  const wire::Submit plain = submit("\"n\":1");
  EXPECT_EQ(thinks(), -1);
  EXPECT_FALSE(plain.reasoning->open);
  EXPECT_EQ(plain.reasoning->budget, -1);
  EXPECT_TRUE(submit("\"enable_thinking\":true").reasoning->open);
  submit("\"reasoning_effort\":\"none\"");
  EXPECT_EQ(thinks(), 0);
  submit("\"reasoning_effort\":\"low\"");
  EXPECT_EQ(thinks(), 1);
  const wire::Submit budget = submit("\"enable_thinking\":true,\"reasoning_budget\":8");
  EXPECT_EQ(budget.reasoning->budget, 8);
  EXPECT_THAT(server.frontend.decode(budget.reasoning->wrap_up), HasSubstr("</think>"));
  // A form of the answer begins behind the reasoning.
  const wire::Submit form =
      submit("\"enable_thinking\":true,\"response_format\":{\"type\":\"json_object\"}");
  EXPECT_TRUE(may_be(form.grammar, "\n\n{}"));
  for (const char* bad : {"\"reasoning_budget\":-1", "\"reasoning_budget\":\"8\""})
    EXPECT_EQ(server.post(kChat, chat(bad)).status, 400);
}

TEST(Logprobs, F038_ShapesAndRanges) {
  TestServer server;
  wire::Tokens first{
      {'a', 'b'}, "ab", {{-0.5f, {{'a', -0.5f}, {'c', -1.5f}}}, {-2, {{'x', -0.1f}}}}};
  wire::Tokens last{{257}, "", {{-0.25f, {}}}};
  server.engine.set_script({first, last, wire::Finished{wire::Reason::kStop, {4, 3, 0}, {}}});
  const auto content_of = [](const Reply& reply) {
    json all = json::array();
    if (reply.header("content-type") == "application/json")
      return json::parse(reply.body)["choices"][0]["logprobs"]["content"];
    for (const std::string& data : reply.events()) {
      if (data == "[DONE]") continue;
      const json logprobs = json::parse(data)["choices"][0]["logprobs"];
      if (!logprobs.is_null())
        for (const json& each : logprobs["content"]) all.push_back(each);
    }
    return all;
  };
  const std::string more = "\"logprobs\":true,\"top_logprobs\":2";
  const json content = content_of(server.post(kChat, chat(more)));
  EXPECT_EQ(content, content_of(server.post(kChat, chat(more + ",\"stream\":true"))));
  // The token that ends the answer is not part of it.
  ASSERT_EQ(content.size(), 2u);
  EXPECT_EQ(content[0]["token"], "a");
  EXPECT_EQ(content[0]["bytes"], json::array({'a'}));
  EXPECT_EQ(content[0]["logprob"], -0.5);
  EXPECT_EQ(content[0]["top_logprobs"][1]["token"], "c");
  EXPECT_EQ(server.engine.wait_for_submit(1).n_top_logprobs, 2);

  const json text = json::parse(server.post("/v1/completions", "{\"prompt\":\"hi\",\"logprobs\":2}")
                                    .body)["choices"][0]["logprobs"];
  EXPECT_EQ(text["tokens"], json::array({"a", "b"}));
  EXPECT_EQ(text["token_logprobs"], json::array({-0.5, -2.0}));
  EXPECT_EQ(text["top_logprobs"][0], json::parse(R"({"a":-0.5,"c":-1.5})"));
  EXPECT_EQ(text["text_offset"], json::array({0, 1}));
  for (const char* bad :
       {"\"logprobs\":true,\"top_logprobs\":21", "\"logprobs\":true,\"top_logprobs\":-1",
        "\"logprobs\":false,\"top_logprobs\":1", "\"logprobs\":1"})
    EXPECT_EQ(server.post(kChat, chat(bad)).status, 400) << bad;
  for (const char* good : {"\"logprobs\":true,\"top_logprobs\":0",
                           "\"logprobs\":true,\"top_logprobs\":20", "\"logprobs\":true"})
    EXPECT_EQ(server.post(kChat, chat(good)).status, 200) << good;
}

TEST(Queue, MoreThanCanWaitGets429) {
  Config config = testing::test_config();
  config.max_queue = 1;
  TestServer server(config);
  supervise::Status status = server.engine.status();
  status.n_requests = status.limits.n_slots + 1;
  server.engine.set_status(status);
  const Reply reply = server.post(kChat, chat("\"n\":1"));
  EXPECT_EQ(reply.status, 429);
  EXPECT_FALSE(reply.header("retry-after").empty());
  EXPECT_EQ(json::parse(reply.body)["error"]["type"], "rate_limit_error");
  EXPECT_EQ(json::parse(reply.body)["error"]["code"], "queue_full");
  status.n_requests = status.limits.n_slots;
  server.engine.set_status(status);
  server.engine.answer_with({"a"});
  EXPECT_EQ(server.post(kChat, chat("\"n\":1")).status, 200);
  EXPECT_EQ(server.post(kChat, chat("\"n\":2")).status, 429);
}

TEST(Props, SlotsTellWhatRunsWithoutItsText) {
  TestServer server;
  testing::RawClient client = server.client();
  client.send_request("POST", kChat, chat("\"stream\":true"));
  server.engine.wait_for_submit();
  server.engine.send(1, wire::Progress{3, 8, 2});
  server.engine.send_text(1, "secret");
  ASSERT_TRUE(client.receive_until("secret"));
  const Reply reply = server.ask("GET", "/slots");
  EXPECT_EQ(reply.body.find("secret"), std::string::npos);
  const json row = json::parse(reply.body)["slots"].at(0);
  EXPECT_EQ(row["state"], "writing");
  EXPECT_EQ(row["prompt_tokens"], 8);
  EXPECT_EQ(row["read_tokens"], 3);
  EXPECT_EQ(row["cached_tokens"], 2);
  EXPECT_EQ(row["answer_tokens"], 1);
  server.engine.send(1, wire::Finished{});
  ASSERT_TRUE(client.receive_until("[DONE]"));
  EXPECT_EQ(json::parse(server.ask("GET", "/slots").body)["slots"][0]["state"], "idle");
  const json props = json::parse(server.ask("GET", "/props").body);
  EXPECT_EQ(props["model"], "tiny");
  EXPECT_EQ(props["chat_template"]["call_format"], "xml");
  EXPECT_EQ(props["context_length"], 512);
  EXPECT_TRUE(props["memory_plan"].is_null()) << "no engine has told one";
}

TEST(Props, TheMemoryPlanAndTheTiersOfExperts) {
  TestServer server;
  supervise::Status status = server.engine.status();
  status.memory = std::make_shared<const wire::MemoryPlan>(wire::MemoryPlan{
      {{"RAM", 1000, 100, 700, 650, 0, {{"state", "pages", "2 x 3 B", 6, "prompt+decode", true}}},
       {"card", 2000, 200, 900, 800, 12, {}}},
      77});
  status.pulse.work.experts = {9, 1, 30, 10, 4, 5000, 2};
  server.engine.set_status(status);
  EXPECT_EQ(json::parse(server.ask("GET", "/props").body)["memory_plan"], json::parse(R"({
    "cards": [{"name": "card", "budget_bytes": 2000, "reserve_bytes": 200, "peak_bytes": 900,
               "used_bytes": 800, "expert_slots": 12, "lines": []}],
    "ram": {"name": "RAM", "budget_bytes": 1000, "reserve_bytes": 100, "peak_bytes": 700,
            "used_bytes": 650,
            "lines": [{"owner": "state", "name": "pages", "bytes": 6,
                       "phases": ["prompt", "decode"], "formula": "2 x 3 B", "mapped": true}]},
    "storage": {"bytes": 77}})"));
  const std::string metrics = server.ask("GET", "/metrics").body;
  for (const char* row :
       {"expert_hits_total{tier=\"card\"} 9\n", "expert_hits_total{tier=\"ram\"} 30\n",
        "expert_misses_total{tier=\"card\"} 1\n", "expert_misses_total{tier=\"ram\"} 10\n",
        "expert_swaps_total 2\n", "experts_read_ahead_total 4\n",
        "expert_read_bytes_total 5000\n"}) {
    EXPECT_NE(metrics.find(row), std::string::npos) << row << metrics;
  }
}

}  // namespace
}  // namespace strata::server
