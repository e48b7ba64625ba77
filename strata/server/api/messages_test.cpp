// /v1/messages and /v1/responses through a real server with a fake engine.
#include "strata/server/api/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "strata/base/format.h"
#include "strata/server/testing/test_server.h"

namespace strata::server {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::Reply;
using testing::TestServer;

const std::string kMessages = "/v1/messages";
const std::string kResponses = "/v1/responses";
const std::vector<std::string> kFullTurn = {
    "<think>\nfirst ",
    "think\n</think>\n\n",
    "Then ",
    "say.\n",
    "<tool_call>\n<function=get_time>\n<parameter=city>\nOs",
    "lo\n</parameter>\n</function>\n</tool_call>\n",
    "<tool_call>\n<function=get_time>\n</function>\n</tool_call>"};

std::string message(const std::string& more = "") {
  return R"({"model":"m","max_tokens":50,"messages":[{"role":"user","content":"hi"}])" +
         (more.empty() ? "" : "," + more) + "}";
}
constexpr const char* kAnthropicTools =
    R"("tools":[{"name":"get_time","description":"d","input_schema":{"type":"object","properties":{"city":{"type":"string"}}}}])";
std::string response(const std::string& more = "") {
  return R"({"input":"hi")" + (more.empty() ? "" : "," + more) + "}";
}
constexpr const char* kResponseTools =
    R"("tools":[{"type":"function","name":"get_time","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}])";

void expect_refused(TestServer& server, const std::string& path, const std::string& body,
                    const std::string& named) {
  const Reply reply = server.post(path, body);
  EXPECT_EQ(reply.status, 400) << body;
  EXPECT_THAT(reply.body, HasSubstr(named)) << body;
}

TEST(Messages, F050_AWholeTurn) {
  TestServer server;
  server.engine.answer_with(kFullTurn);
  const json body = json::parse(server.post(kMessages, message(kAnthropicTools)).body);
  EXPECT_EQ(body["type"], "message");
  EXPECT_EQ(body["role"], "assistant");
  EXPECT_EQ(body["model"], "tiny");
  EXPECT_EQ(body["stop_reason"], "tool_use");
  EXPECT_TRUE(body["stop_sequence"].is_null());
  ASSERT_EQ(body["content"].size(), 4u);
  EXPECT_EQ(body["content"][0]["type"], "thinking");
  EXPECT_EQ(body["content"][0]["thinking"], "first think");
  EXPECT_EQ(body["content"][1], json::parse(R"({"type":"text","text":"Then say."})"));
  EXPECT_EQ(body["content"][2]["type"], "tool_use");
  EXPECT_EQ(body["content"][2]["name"], "get_time");
  EXPECT_EQ(body["content"][2]["input"], json::parse(R"({"city":"Oslo"})"));
  EXPECT_EQ(body["content"][3]["input"], json::object());
  EXPECT_NE(body["content"][2]["id"], body["content"][3]["id"]);
  EXPECT_EQ(body["usage"]["input_tokens"], 3);
  EXPECT_EQ(body["usage"]["cache_read_input_tokens"], 1);
  EXPECT_EQ(body["usage"]["output_tokens"], 7);
}

TEST(Messages, F050_TheEventsOfAStream) {
  TestServer server;
  server.engine.answer_with(kFullTurn);
  const Reply reply =
      server.post(kMessages, message(std::string("\"stream\":true,") + kAnthropicTools));
  std::vector<std::string> order;
  json content = json::array();
  json delta;
  for (const std::string& data : reply.events()) {
    const json event = json::parse(data);
    const std::string type = event["type"];
    EXPECT_THAT(reply.body, HasSubstr("event: " + type + "\ndata: "));
    if (type == "content_block_start") {
      EXPECT_EQ(event["index"], content.size());
      content.push_back(event["content_block"]);
    } else if (type == "content_block_delta") {
      EXPECT_EQ(event["index"], content.size() - 1);
      const json& d = event["delta"];
      json& block = content.back();
      if (d["type"] == "text_delta")
        block["text"] = block["text"].get<std::string>() + d["text"].get<std::string>();
      if (d["type"] == "thinking_delta")
        block["thinking"] = block["thinking"].get<std::string>() + d["thinking"].get<std::string>();
      if (d["type"] == "input_json_delta")
        block["json"] = block.value("json", "") + d["partial_json"].get<std::string>();
    } else if (type == "message_delta") {
      delta = event;
    }
    if (order.empty() || order.back() != type) order.push_back(type);
  }
  const std::vector<std::string> block = {"content_block_start", "content_block_delta",
                                          "content_block_stop"};
  std::vector<std::string> expected = {"message_start"};
  for (int i = 0; i < 4; ++i) expected.insert(expected.end(), block.begin(), block.end());
  expected.insert(expected.end(), {"message_delta", "message_stop"});
  EXPECT_EQ(order, expected);
  EXPECT_EQ(content[0]["thinking"], "first think");
  EXPECT_EQ(content[1]["text"], "Then say.");
  EXPECT_EQ(content[2]["json"], R"({"city":"Oslo"})");
  EXPECT_EQ(content[3]["json"], "{}");
  EXPECT_EQ(delta["delta"]["stop_reason"], "tool_use");
  EXPECT_EQ(delta["usage"]["output_tokens"], 7);
  EXPECT_EQ(reply.body.find("[DONE]"), std::string::npos);
}

TEST(Messages, F025_F050_ThinkingAndEnds) {
  TestServer server;
  size_t n = 0;
  server.engine.answer_with({"<think>never ", "closed"}, wire::Reason::kLength);
  const json body = json::parse(server.post(kMessages, message()).body);
  ++n;
  EXPECT_EQ(body["stop_reason"], "max_tokens");
  ASSERT_EQ(body["content"].size(), 1u);
  EXPECT_EQ(body["content"][0]["thinking"], "never closed");
  const auto thinks = [&](const std::string& more) {
    EXPECT_EQ(server.post(kMessages, message(more)).status, 200) << more;
    for (const auto& [name, value] : server.frontend.last().variables)
      if (name == "enable_thinking") return value.as_bool();
    return false;
  };
  EXPECT_FALSE(thinks("\"n\":1"));
  EXPECT_FALSE(thinks(R"("thinking":{"type":"disabled"})"));
  EXPECT_TRUE(thinks(R"("thinking":{"type":"adaptive"})"));
  EXPECT_TRUE(thinks(R"("thinking":{"type":"enabled","budget_tokens":1024})"));
  EXPECT_EQ(server.engine.wait_for_submit(5).reasoning->budget, 1024);
  server.engine.set_script({wire::Tokens{{1}, "a"},
                            wire::Finished{wire::Reason::kStopString, {4, 1, 0}, {}, {}, "END"}});
  const json stopped =
      json::parse(server.post(kMessages, message(R"("stop_sequences":["END"])")).body);
  EXPECT_EQ(stopped["stop_reason"], "stop_sequence");
  EXPECT_EQ(stopped["stop_sequence"], "END");
}

TEST(Messages, WhatComesBackIsReadAsItWasSaid) {
  TestServer server;
  server.engine.answer_with({"a"});
  const Reply reply = server.post(kMessages, R"({"max_tokens":5,
    "system":[{"type":"text","text":"S","cache_control":{"type":"ephemeral"}},{"type":"text","text":"T"}],
    "messages":[{"role":"user","content":"q"},
      {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":""},
        {"type":"text","text":"x"},{"type":"tool_use","id":"c1","name":"f","input":{"a":[1]}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"r"}]},
        {"type":"text","text":"next"}]}]})");
  EXPECT_EQ(reply.status, 200) << reply.body;
  std::string seen;
  for (const ChatMessage& each : server.frontend.last().messages)
    seen += each.role + "=" + each.content + ";";
  EXPECT_EQ(seen, "system=S\n\nT;user=q;assistant=x;tool=r;user=next;");
  EXPECT_EQ(server.frontend.last().messages[2].reasoning, "t");
  EXPECT_EQ(server.frontend.last().messages[2].tool_calls.at(0).name, "f");
  EXPECT_EQ(server.frontend.last().messages[3].tool_call_id, "c1");
}

TEST(Messages, F049_CountTokensIsWhatIsBilled) {
  TestServer server;
  server.engine.answer_with({"a"});
  const std::string rest = std::string("\"system\":\"be kind\",") + kAnthropicTools;
  const Reply reply = server.ask("POST", kMessages + "/count_tokens?beta=true", message(rest),
                                 "anthropic-beta: what-ever\r\nanthropic-version: 2023-06-01\r\n");
  EXPECT_EQ(reply.status, 200) << reply.body;
  server.post(kMessages, message(rest));
  EXPECT_EQ(json::parse(reply.body)["input_tokens"], server.engine.wait_for_submit().ids.size());
}

TEST(Messages, ErrorsHaveTheFormOfThisApi) {
  Config config = testing::test_config();
  config.api_keys = {"secret"};
  TestServer server(config);
  const auto error = [&](const std::string& body, const std::string& headers) {
    return json::parse(server.ask("POST", kMessages, body, headers).body);
  };
  EXPECT_EQ(error(message(), "")["error"]["type"], "authentication_error");
  const json bad = error("{}", "x-api-key: secret\r\n");
  EXPECT_EQ(bad["type"], "error");
  EXPECT_EQ(bad["error"]["type"], "invalid_request_error");
  EXPECT_THAT(bad["error"]["message"].get<std::string>(), HasSubstr("max_tokens"));
  server.engine.set_script({wire::Failed{ErrorCode::kResourceExhausted, "full"}});
  EXPECT_EQ(error(message(), "x-api-key: secret\r\n")["error"]["type"], "overloaded_error");
  server.engine.set_script({wire::Tokens{{1}, "a"}, wire::Failed{ErrorCode::kInternal, "why"}});
  const Reply stream =
      server.ask("POST", kMessages, message("\"stream\":true"), "x-api-key: secret\r\n");
  EXPECT_THAT(stream.body, HasSubstr("event: error\ndata: {\"type\":\"error\""));
}

TEST(Messages, WhatIsNotThereIsRefusedByName) {
  TestServer server;
  for (const auto& [more, named] : std::vector<std::pair<std::string, std::string>>{
           {"\"mcp_servers\":[{}]", "mcp_servers"},
           {"\"container\":\"x\"", "container"},
           {"\"n\":2", "n"},
           {R"("tools":[{"type":"bash_20250124","name":"bash"}])", "tools[0].type"},
           {R"("tool_choice":{"type":"any"})", "tool_choice"},
           {R"("thinking":{"type":"enabled"})", "thinking.budget_tokens"},
           {R"("thinking":{"type":"maybe"})", "thinking.type"},
           {"\"stop_sequences\":[\"\"]", "stop_sequences[0]"},
           {"\"top_k\":-1", "top_k"}})
    expect_refused(server, kMessages, message(more), named);
  const auto with = [](const std::string& messages) {
    return R"({"max_tokens":5,"messages":)" + messages + "}";
  };
  expect_refused(server, kMessages, with("[]"), "messages");
  expect_refused(server, kMessages,
                 with(R"([{"role":"user","content":[{"type":"image","source":{}}]}])"),
                 "messages[0].content[0].type");
  expect_refused(server, kMessages, with(R"([{"role":"assistant","content":"a"}])"), "messages[0]");
  expect_refused(server, kMessages, with(R"([{"role":"tool","content":"a"}])"), "messages[0].role");
}

TEST(Messages, ToolChoices) {
  TestServer server;
  server.engine.answer_with({"a"});
  size_t n = 0;
  const auto grammar = [&](const std::string& choice) {
    EXPECT_EQ(
        server.post(kMessages, message(std::string(kAnthropicTools) + ",\"tool_choice\":" + choice))
            .status,
        200);
    return server.engine.wait_for_submit(++n).grammar;
  };
  EXPECT_EQ(grammar(R"({"type":"auto"})"), "");
  EXPECT_EQ(grammar(R"({"type":"none"})"), "");
  EXPECT_NE(grammar(R"({"type":"any"})"), "");
  EXPECT_NE(grammar(R"({"type":"tool","name":"get_time","disable_parallel_tool_use":true})"), "");
  expect_refused(
      server, kMessages,
      message(std::string(kAnthropicTools) + R"(,"tool_choice":{"type":"tool","name":"x"})"),
      "tool_choice.name");
}

TEST(Messages, F046_SilentStreamsGetPings) {
  Config config = testing::test_config();
  config.keepalive = std::chrono::milliseconds(50);
  TestServer server(config);
  testing::RawClient client = server.client();
  client.send_request("POST", kMessages, message("\"stream\":true"));
  server.engine.wait_for_submit();
  EXPECT_TRUE(client.receive_until("event: ping\ndata: {\"type\":\"ping\"}\n\n"));
}

TEST(Responses, F050_AWholeTurnAndItsEvents) {
  TestServer server;
  server.engine.answer_with(kFullTurn);
  const json whole = json::parse(server.post(kResponses, response(kResponseTools)).body);
  EXPECT_EQ(whole["object"], "response");
  EXPECT_EQ(whole["status"], "completed");
  ASSERT_EQ(whole["output"].size(), 4u);
  EXPECT_EQ(whole["output"][0]["type"], "reasoning");
  EXPECT_EQ(whole["output"][0]["content"][0]["text"], "first think");
  EXPECT_EQ(whole["output"][1]["content"][0]["text"], "Then say.");
  EXPECT_EQ(whole["output"][2]["name"], "get_time");
  EXPECT_EQ(whole["output"][2]["arguments"], R"({"city":"Oslo"})");
  EXPECT_EQ(whole["output"][3]["arguments"], "{}");
  EXPECT_EQ(whole["usage"]["input_tokens"], 4);
  EXPECT_EQ(whole["usage"]["total_tokens"], 11);

  const Reply stream =
      server.post(kResponses, response(std::string("\"stream\":true,") + kResponseTools));
  std::vector<std::string> order;
  int sequence = 0;
  json last;
  std::string text;
  json items = json::array();
  for (const std::string& data : stream.events()) {
    const json event = json::parse(data);
    EXPECT_EQ(event["sequence_number"], sequence++);
    const std::string type = event["type"];
    if (type == "response.output_text.delta") text += event["delta"].get<std::string>();
    if (type == "response.output_item.added") {
      EXPECT_EQ(event["output_index"], items.size());
    }
    if (type == "response.output_item.done") items.push_back(event["item"]);
    if (order.empty() || order.back() != type) order.push_back(type);
    last = event;
  }
  EXPECT_EQ(text, "Then say.");
  const auto item = [&](const std::string& kind) {
    std::vector<std::string> names = {"response.output_item.added"};
    if (kind != "function_call_arguments") names.push_back("response.content_part.added");
    names.push_back("response." + kind + ".delta");
    names.push_back("response." + kind + ".done");
    if (kind != "function_call_arguments") names.push_back("response.content_part.done");
    names.push_back("response.output_item.done");
    return names;
  };
  std::vector<std::string> expected = {"response.created", "response.in_progress"};
  for (const char* kind :
       {"reasoning_text", "output_text", "function_call_arguments", "function_call_arguments"})
    for (const std::string& name : item(kind)) expected.push_back(name);
  expected.emplace_back("response.completed");
  EXPECT_EQ(order, expected);
  ASSERT_EQ(items.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    for (const char* name : {"type", "content", "arguments", "name", "status"})
      EXPECT_EQ(items[i].value(name, json()), whole["output"][i].value(name, json())) << i << name;
    EXPECT_EQ(items[i], last["response"]["output"][i]);
  }
}

TEST(Responses, F050_ItemsOfEarlierTurns) {
  TestServer server;
  server.engine.answer_with({"a"}, wire::Reason::kLength);
  const Reply reply = server.post(kResponses, R"({"instructions":"be kind","input":[
    {"role":"developer","content":"D"},
    {"role":"user","content":[{"type":"input_text","text":"q"}]},
    {"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"t"}]},
    {"type":"message","role":"assistant","content":[{"type":"output_text","text":"x","annotations":[]}]},
    {"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1}"},
    {"type":"function_call_output","call_id":"c1","output":"r"}]})");
  EXPECT_EQ(reply.status, 200) << reply.body;
  const json body = json::parse(reply.body);
  EXPECT_EQ(body["status"], "incomplete");
  EXPECT_EQ(body["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(body["instructions"], "be kind");
  EXPECT_EQ(body["store"], false);
  std::string seen;
  for (const ChatMessage& each : server.frontend.last().messages)
    seen += each.role + "=" + each.content + "," + each.reasoning + "," +
            std::to_string(each.tool_calls.size()) + ";";
  EXPECT_EQ(seen, "system=be kind\n\nD,,0;user=q,,0;assistant=x,t,1;tool=r,,0;");
}

TEST(Responses, WhatIsNotThereIsRefusedByName) {
  TestServer server;
  for (const auto& [more, named] : std::vector<std::pair<std::string, std::string>>{
           {"\"previous_response_id\":\"resp_1\"", "previous_response_id"},
           {"\"conversation\":\"c\"", "conversation"},
           {"\"background\":true", "background"},
           {"\"truncation\":\"auto\"", "truncation"},
           {"\"include\":[\"file_search_call.results\"]", "include"},
           {R"("tools":[{"type":"web_search"}])", "tools[0].type"},
           {R"("text":{"format":{"type":"xml"}})", "text.format.type"},
           {R"("reasoning":{"effort":"much"})", "reasoning.effort"},
           {"\"max_output_tokens\":0", "max_output_tokens"}})
    expect_refused(server, kResponses, response(more), named);
  expect_refused(server, kResponses, "{}", "input");
  expect_refused(server, kResponses, R"({"input":[{"type":"item_reference","id":"x"}]})",
                 "input[0].type");
  expect_refused(
      server, kResponses,
      R"({"input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}]})",
      "input[0].content[0].type");
  server.engine.answer_with({"{}"});
  EXPECT_EQ(
      server
          .post(
              kResponses,
              response(
                  R"("text":{"format":{"type":"json_schema","name":"x","schema":{"type":"object"}}},"store":true)"))
          .status,
      200);
  EXPECT_NE(server.engine.wait_for_submit().grammar, "");
}

TEST(Responses, AFailureInsideAStream) {
  TestServer server;
  server.engine.set_script({wire::Tokens{{1}, "a"}, wire::Failed{ErrorCode::kInternal, "why"}});
  const json last =
      json::parse(server.post(kResponses, response("\"stream\":true")).events().back());
  EXPECT_EQ(last["type"], "response.failed");
  EXPECT_EQ(last["response"]["status"], "failed");
  EXPECT_THAT(last["response"]["error"]["message"].get<std::string>(), HasSubstr("why"));
}

}  // namespace
}  // namespace strata::server
