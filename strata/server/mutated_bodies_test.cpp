// Ten thousand broken bodies: each gets an answer of its kind, and the server goes on.
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "strata/server/testing/test_server.h"

namespace strata::server {
namespace {

using testing::RawClient;
using testing::Reply;
using testing::TestServer;

struct Seed {
  const char* path;
  std::string body;
};

std::vector<Seed> seeds() {
  const std::string tools =
      R"("tools":[{"type":"function","function":{"name":"f","description":"d","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"integer","minimum":1}},"required":["a"]}}}])";
  return {
      {"/v1/chat/completions",
       R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"c","content":"r"}],"max_tokens":9,"temperature":0.5,"stop":["a"],"logit_bias":{"5":-1},"seed":7,"n":1,)" +
           tools +
           R"(,"tool_choice":"auto","logprobs":true,"top_logprobs":2,"stream_options":null})"},
      {"/v1/chat/completions",
       R"({"messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","properties":{"a":{"type":"string","pattern":"^[a-z]+$"},"b":{"type":"number","minimum":-1.5,"maximum":2},"c":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/t"}]}},"required":["a"],"additionalProperties":false,"$defs":{"t":{"type":"array","items":{"type":"boolean"},"maxItems":3}}}}},"reasoning_budget":5,"chat_template_kwargs":{"enable_thinking":true}})"},
      {"/v1/completions",
       R"({"prompt":[1,2,3],"max_tokens":3,"grammar":"root ::= \"a\" ([b-d]+ | \"e\"){1,3}","logprobs":1,"top_p":0.9})"},
      {"/v1/messages",
       R"({"max_tokens":5,"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":""},{"type":"tool_use","id":"c","name":"f","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto"},"thinking":{"type":"enabled","budget_tokens":9}})"},
      {"/v1/responses",
       R"({"input":[{"role":"user","content":[{"type":"input_text","text":"q"}]},{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"t"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"r"}],"text":{"format":{"type":"json_object"}},"reasoning":{"effort":"low"},"max_output_tokens":5})"},
      {"/tokenize", R"({"content":"abc","parse_special":true,"add_special":false})"},
      {"/detokenize", R"({"tokens":[1,2,3]})"},
  };
}

std::string mutated(std::string body, std::mt19937& random) {
  const std::vector<std::string> pieces = {"null",
                                           "true",
                                           "-1",
                                           "1e999",
                                           "99999999999999999999",
                                           "\"\"",
                                           "[]",
                                           "{}",
                                           "[[[[",
                                           "}",
                                           "]",
                                           ",",
                                           ":",
                                           "\"",
                                           "\\u0000",
                                           "\\ud800",
                                           "\xFF",
                                           "\xC3",
                                           "\"$ref\":\"#\"",
                                           "\"type\":\"object\",",
                                           "{\"a\":{\"a\":{\"a\":",
                                           "(((((",
                                           "{1000000}",
                                           "\"x\":",
                                           "0.1",
                                           "\xF0\x9F\x98\x80"};
  for (uint32_t n = 1 + random() % 3; n > 0 && !body.empty(); --n) {
    const size_t at = random() % body.size();
    const size_t length = 1 + random() % 12;
    switch (random() % 6) {
      case 0:
        body[at] = static_cast<char>(random() % 256);
        break;
      case 1:
        body.erase(at, length);
        break;
      case 2:
        body.insert(at, pieces[random() % pieces.size()]);
        break;
      case 3:
        body.replace(at, length, pieces[random() % pieces.size()]);
        break;
      case 4:
        body.insert(at, body.substr(random() % body.size(), length * 4));
        break;
      default:
        body.resize(at);
    }
  }
  return body;
}

TEST(MutatedBodies, OnlyAnswersAndClientErrors) {
  TestServer server;
  server.engine.answer_with({"a"});
  std::mt19937 random(5);
  const std::vector<Seed> all = seeds();
  for (const Seed& seed : all)
    EXPECT_EQ(server.post(seed.path, seed.body).status, 200) << seed.body;
  std::optional<RawClient> client;
  client.emplace(server.port());
  int n_refused = 0;
  for (int i = 0; i < 10'000; ++i) {
    const Seed& seed = all[static_cast<size_t>(i) % all.size()];
    const std::string body = mutated(seed.body, random);
    const Reply reply = client->ask("POST", seed.path, body);
    ASSERT_TRUE(reply.status == 200 || (reply.status >= 400 && reply.status < 500))
        << reply.status << " " << seed.path << " " << body << "\n"
        << reply.body;
    n_refused += reply.status != 200;
    if (reply.header("connection") == "close") client.emplace(server.port());
  }
  EXPECT_GT(n_refused, 5000);
  EXPECT_EQ(server.ask("GET", "/health").status, 200);
}

}  // namespace
}  // namespace strata::server
