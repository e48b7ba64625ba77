// F-034 through HTTP: 220 outputs, cut in two at every byte.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "strata/server/testing/test_scripts.h"
#include "strata/server/testing/test_server.h"

namespace strata::server {
namespace {

using nlohmann::json;
using testing::RawClient;
using testing::Reply;
using testing::TestServer;

constexpr const char* kPath = "/v1/chat/completions";
constexpr const char* kJson = "Content-Type: application/json\r\n";

std::string body(bool stream) {
  const char* tools =
      R"([{"type":"function","function":{"name":"get_weather","parameters":{"type":"object",)"
      R"("properties":{"city":{"type":"string"}}}}},{"type":"function","function":{"name":"mixed"}}])";
  return std::string(R"({"messages":[{"role":"user","content":"hi"}],"tools":)") + tools +
         (stream ? R"(,"stream":true,"stream_options":{"include_usage":true}})" : "}");
}

struct Said {
  std::string content, reasoning, finish_reason;
  std::vector<std::pair<std::string, std::string>> calls;
  json usage;
  bool operator==(const Said&) const = default;
};

void PrintTo(const Said& said, std::ostream* out) {
  *out << json(said.content) << " reasoning " << json(said.reasoning) << " " << said.finish_reason
       << " " << said.usage;
  for (const auto& [name, arguments] : said.calls) *out << " " << name << arguments;
}

Said whole(const Reply& reply) {
  const json answer = json::parse(reply.body), choice = answer["choices"][0];
  const json& message = choice["message"];
  Said said{message["content"].is_null() ? "" : message["content"].get<std::string>(),
            message.value("reasoning_content", ""), choice["finish_reason"]};
  for (const json& call : message.value("tool_calls", json::array()))
    said.calls.emplace_back(call["function"]["name"], call["function"]["arguments"]);
  said.usage = answer["usage"];
  return said;
}

Said joined(const Reply& reply) {
  Said said;
  for (const std::string& data : reply.events()) {
    if (data == "[DONE]") break;
    const json event = json::parse(data);
    if (event["choices"].empty()) {
      said.usage = event["usage"];
      continue;
    }
    const json& choice = event["choices"][0];
    const json& delta = choice["delta"];
    said.content += delta.value("content", "");
    said.reasoning += delta.value("reasoning_content", "");
    for (const json& call : delta.value("tool_calls", json::array())) {
      const json& function = call["function"];
      if (call.contains("id")) said.calls.emplace_back(function["name"], "");
      said.calls.at(call["index"]).second += function.value("arguments", "");
    }
    if (!choice["finish_reason"].is_null()) said.finish_reason = choice["finish_reason"];
  }
  return said;
}

TEST(StreamedAnswers, F034_TheJoinedStreamIsTheWholeAnswerForEveryCut) {
  TestServer server;
  RawClient client(server.port());
  size_t n_streams = 0, n_calls = 0;
  for (const std::string& text : testing::scripts()) {
    const wire::Reason reason = text.size() % 3 == 0 ? wire::Reason::kLength : wire::Reason::kStop;
    server.engine.answer_with({text, ""}, reason);
    const Said expected = whole(client.ask("POST", kPath, body(false), kJson));
    n_calls += expected.calls.size();
    for (size_t cut = 1; cut < text.size(); ++cut) {
      server.engine.answer_with({text.substr(0, cut), text.substr(cut)}, reason);
      ASSERT_EQ(joined(client.ask("POST", kPath, body(true), kJson)), expected)
          << json(text).dump(-1, ' ', false, json::error_handler_t::replace) << "\ncut at " << cut;
      ++n_streams;
    }
  }
  EXPECT_GT(n_streams, 10'000u);
  EXPECT_GT(n_calls, 100u);
}

}  // namespace
}  // namespace strata::server
