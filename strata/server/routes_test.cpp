#include "strata/server/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "strata/base/format.h"
#include "strata/server/page.h"
#include "strata/server/testing/test_server.h"

namespace strata::server {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::RawClient;
using testing::Reply;
using testing::test_config;
using testing::TestServer;

TEST(Routes, ErrorsHaveTheShapeThatClientsRead) {
  TestServer server;
  const Reply reply = server.ask("GET", "/nothing");
  EXPECT_EQ(reply.status, 404);
  const json error = json::parse(reply.body)["error"];
  EXPECT_EQ(error["type"], "not_found_error");
  EXPECT_EQ(error["code"], "not_found");
  EXPECT_TRUE(error["param"].is_null());
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("/nothing"));
  EXPECT_FALSE(reply.header("x-request-id").empty());
}

TEST(Routes, WrongMethodsNameTheRightOnes) {
  TestServer server;
  const Reply get = server.ask("GET", "/v1/chat/completions");
  EXPECT_EQ(get.status, 405);
  EXPECT_EQ(get.header("allow"), "POST, OPTIONS");
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "BREW"})
    EXPECT_EQ(server.ask(method, "/v1/models", "{}").status, 405) << method;
  EXPECT_EQ(server.ask("PUT", "/", "{}").status, 405);
}

// The written list of what is answered without a key: the health and the page.
TEST(Routes, F137_EveryPathWithAndWithoutKey) {
  Config config = test_config();
  config.api_keys = {"secret"};
  TestServer server(config);
  const std::string good = "Authorization: Bearer secret\r\n";
  for (const char* path : {"/", "/app.js", "/style.css", "/health"}) {
    EXPECT_EQ(server.ask("GET", path).status, 200) << path;
    EXPECT_EQ(server.ask("GET", path, "", "Authorization: Bearer wrong\r\n").status, 200) << path;
  }
  for (const char* path : {"/v1/models", "//v1/models", "/v1/models/", "/V1/models",
                           "/%2e/v1/models", "/v1/chat/completions", "/v1/completions", "/tokenize",
                           "/detokenize", "/metrics", "/nothing", "/health/", "/index.html"}) {
    for (const char* method : {"GET", "HEAD", "POST", "PUT", "DELETE"}) {
      EXPECT_EQ(server.ask(method, path).status, 401) << method << path;
      EXPECT_EQ(server.ask(method, path, "", "X-Api-Key: Secret\r\n").status, 401) << path;
      EXPECT_NE(server.ask(method, path, "", good).status, 401) << method << path;
    }
  }
  for (const char* path : {"//v1/models", "/v1/models/", "/V1/models", "/%2e/v1/models"})
    EXPECT_EQ(server.ask("GET", path, "", good).status, 404) << path;
  EXPECT_EQ(server.ask("GET", "/v1/models", "", "authorization: bearer secret \r\n").status, 200);
  EXPECT_EQ(server.ask("GET", "/v1/models", "", "X-API-Key: secret\r\n").status, 200);
}

TEST(Routes, F138_BrowsersFromElsewhere) {
  TestServer server;
  EXPECT_EQ(server.ask("POST", "/tokenize", "{\"content\":\"a\"}", "Origin: null\r\n").status, 403);
  EXPECT_EQ(server
                .ask("POST", "/tokenize", "{\"content\":\"a\"}",
                     "Origin: https://evil.example\r\nContent-Type: text/plain\r\n")
                .status,
            403);
  EXPECT_EQ(server.ask("OPTIONS", "/tokenize", "", "Origin: https://evil.example\r\n").status, 403);
  EXPECT_EQ(
      server.ask("POST", "/tokenize", "{\"content\":\"a\"}", "Content-Type: text/plain\r\n").status,
      415);
  RawClient rebound(server.port());
  rebound.send("GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  EXPECT_EQ(rebound.reply().status, 403);
  RawClient absolute(server.port());
  absolute.send("GET http://evil.example/v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(absolute.reply().status, 403);
}

TEST(Routes, BodiesOfOtherCharsetsAreRefused) {
  TestServer server;
  const auto status = [&](const std::string& type) {
    return server.ask("POST", "/tokenize", "{\"content\":\"a\"}", "Content-Type: " + type + "\r\n")
        .status;
  };
  for (const char* good :
       {"application/json", "Application/JSON", "application/json;charset=utf-8",
        "application/json; charset=\"UTF-8\"", "application/json ; boundary=x ; Charset=UTF8",
        "application/problem+json", "application/x-www-form-urlencoded; charset=utf-8"})
    EXPECT_EQ(status(good), 200) << good;
  for (const char* bad :
       {"application/json; charset=utf-16", "application/json;charset=\"iso-8859-1\"",
        "application/json; boundary=x; charset=UTF-32", "text/json", "application/jsonp"})
    EXPECT_EQ(status(bad), 415) << bad;
}

TEST(Routes, LargeBodiesDoNotKeepSmallOnesWaiting) {
  TestServer server;
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  std::atomic<int> n_large = 0;
  server.frontend.on_encode = [&](size_t n_bytes) {
    if (n_bytes < 100'000) return;
    ++n_large;
    open.wait();
  };
  const std::string large = "{\"content\":\"" + std::string(100'000, 'a') + "\"}";
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    clients.back()->send_request("POST", "/tokenize", large);
  }
  while (n_large == 0) std::this_thread::yield();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(server.post("/tokenize", "{\"content\":\"a\"}").status, 200);
  EXPECT_EQ(n_large, 1);
  gate.set_value();
  for (const auto& client : clients) EXPECT_EQ(client->reply().status, 200);
}

TEST(Routes, ErrorsOfTheServerNameNoFolders) {
  Config config = test_config();
  config.private_folders = {"/srv/models/team one", "/srv"};
  TestServer server(config);
  server.engine.set_script({wire::Failed{ErrorCode::kIo, "/srv/models/team one/m.gguf: gone"}});
  Reply reply = server.post("/v1/completions", "{\"prompt\":\"hi\"}");
  EXPECT_EQ(reply.status, 500);
  EXPECT_THAT(reply.body, HasSubstr("\"m.gguf: gone (request "));
  reply = server.post("/v1/completions", "{\"prompt\":\"hi\",\"stream\":true}");
  EXPECT_EQ(reply.body.find("/srv"), std::string::npos) << reply.body;
  supervise::Status status = server.engine.status();
  status.state = supervise::State::kFailed;
  status.reasons = {"opening /srv/models/team one/m.gguf, then /srv/x"};
  server.engine.set_status(status);
  reply = server.ask("GET", "/health");
  EXPECT_EQ(reply.status, 503);
  EXPECT_THAT(reply.body, HasSubstr("opening m.gguf, then x"));
}

TEST(Routes, ListedOriginsMayReadAnswersAndErrors) {
  Config config = test_config();
  config.cors_origins = {"https://chat.example"};
  config.api_keys = {"secret"};
  TestServer server(config);
  const std::string origin = "Origin: https://chat.example\r\n";
  const Reply preflight = server.ask("OPTIONS", "/v1/chat/completions", "", origin);
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.header("access-control-allow-origin"), "https://chat.example");
  const Reply answer =
      server.ask("GET", "/v1/models", "", origin + "Authorization: Bearer secret\r\n");
  EXPECT_EQ(answer.header("access-control-allow-origin"), "https://chat.example");
}

TEST(Routes, F139_OnlyEmbeddedFilesAreServed) {
  TestServer server;
  for (const char* path : {"/../../etc/hostname", "/%2e%2e%2f%2e%2e%2fetc/hostname",
                           "/..%5c..%5cetc", "/static/..;/", "/./app.js", "/app.js/", "/app.js%00",
                           "//etc/hostname", "/C:/windows/win.ini", "/APP.JS", "/page/app.js"})
    EXPECT_EQ(server.ask("GET", path).status, 404) << path;
  RawClient client(server.port());
  constexpr char kNul[] = "GET /a\0b HTTP/1.1\r\nHost: localhost\r\n\r\n";
  client.send(std::string(kNul, sizeof(kNul) - 1));
  EXPECT_EQ(client.reply().status, 400);
  EXPECT_EQ(server.ask("GET", "etc/hostname").status, 400);
  EXPECT_EQ(server.ask("GET", "/app.js?v=1").status, 200);
}

TEST(Routes, ThePageIsCompleteAndLocked) {
  TestServer server;
  const Reply page = server.ask("GET", "/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.header("content-type"), "text/html; charset=utf-8");
  EXPECT_THAT(page.header("content-security-policy"), HasSubstr("default-src 'none'"));
  EXPECT_THAT(page.body, HasSubstr("<title>strata</title>"));
  EXPECT_EQ(page_files().size(), 3u);
  for (const PageFile& file : page_files()) {
    EXPECT_EQ(server.ask("GET", file.path).body, file.bytes);
    EXPECT_FALSE(file.bytes.empty()) << file.path;
    // No maps of the source, and it works without the internet.
    EXPECT_EQ(file.bytes.find("sourceMappingURL"), std::string_view::npos) << file.path;
    for (const char* outside : {"src=\"http", "href=\"http", "url(http", "@import", "//cdn"})
      EXPECT_EQ(file.bytes.find(outside), std::string_view::npos) << file.path << outside;
  }
  // Text never becomes HTML: the browser itself refuses.
  EXPECT_THAT(page.header("content-security-policy"),
              HasSubstr("require-trusted-types-for 'script'; trusted-types 'none'"));
}

TEST(Routes, HealthTellsTheStateOfTheEngine) {
  TestServer server;
  supervise::Status status = server.engine.status();
  EXPECT_EQ(json::parse(server.ask("GET", "/health").body)["status"], "ready");
  status.state = supervise::State::kDegraded;
  status.reasons = {"1 of 9 steps have failed"};
  status.n_restarts = 2;
  status.pulse.n_running = 3;
  status.pulse.work.failed_steps = 1;
  status.pulse.wait = "step on device 0";
  status.pulse.resident = 1u << 30;
  server.engine.set_status(status);
  Reply reply = server.ask("GET", "/health");
  EXPECT_EQ(reply.status, 200);
  const json body = json::parse(reply.body);
  EXPECT_EQ(body["status"], "degraded");
  EXPECT_EQ(body["reasons"][0], "1 of 9 steps have failed");
  EXPECT_EQ(body["restarts"], 2);
  EXPECT_EQ(body["engine"]["state"], "degraded");
  EXPECT_EQ(body["engine"]["running"], 3);
  EXPECT_EQ(body["engine"]["wait"], "step on device 0");
  EXPECT_EQ(body["engine"]["failed_steps"], 1);
  EXPECT_EQ(body["engine"]["resident_bytes"], 1u << 30);
  status.state = supervise::State::kRestarting;
  // F-121: whatever bytes a path holds, the JSON stays valid.
  status.reasons = {"killed while reading \"\xFFmodel \xE3\x80\x80.gguf\""};
  server.engine.set_status(status);
  reply = server.ask("GET", "/health");
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(json::parse(reply.body)["status"], "restarting");
}

TEST(Routes, MetricsCountWhatWasAsked) {
  Config config = test_config();
  config.api_keys = {"secret"};
  TestServer server(config);
  const std::string key = "X-Api-Key: secret\r\n";
  supervise::Status status = server.engine.status();
  status.n_restarts = 2;
  status.pulse.n_waiting = 5;
  status.pulse.work.failed_steps = 7;
  status.pulse.anonymous = 4096;
  server.engine.set_status(status);
  server.engine.answer_with({"a", "b"}, wire::Reason::kLength);
  EXPECT_EQ(server.ask("POST", "/v1/completions", "{\"prompt\":\"hi\"}", key).status, 200);
  EXPECT_EQ(server.ask("GET", "/no/such/path", "", key).status, 404);
  EXPECT_EQ(server.ask("GET", "/metrics").status, 401);
  const Reply reply = server.ask("GET", "/metrics", "", key);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  for (const char* row :
       {"# TYPE strata_http_requests_total counter",
        "strata_http_requests_total{path=\"/v1/completions\",status=\"200\"} 1\n",
        "strata_http_requests_total{path=\"other\",status=\"404\"} 1\n",
        "strata_http_requests_total{path=\"/metrics\",status=\"401\"} 1\n",
        "strata_answers_total{reason=\"length\"} 1\n", "strata_prompt_tokens_total 4\n",
        "strata_cached_prompt_tokens_total 1\n", "strata_answer_tokens_total 2\n",
        "strata_engine_state{state=\"ready\"} 1\n", "strata_engine_state{state=\"failed\"} 0\n",
        "# TYPE strata_engine_restarts_total counter", "strata_engine_restarts_total 2\n",
        "strata_engine_waiting_requests 5\n", "strata_engine_failed_steps_total 7\n",
        "strata_engine_anonymous_bytes 4096\n"}) {
    EXPECT_THAT(reply.body, HasSubstr(row));
  }
}

TEST(Routes, ModelsReportTheRealName) {
  TestServer server;
  const json body = json::parse(server.ask("GET", "/v1/models").body);
  EXPECT_EQ(body["object"], "list");
  EXPECT_EQ(body["data"][0]["id"], "tiny");
  EXPECT_EQ(body["data"][0]["context_length"], 512);
}

TEST(Routes, TokenizeAndDetokenize) {
  TestServer server;
  server.frontend.add_bos = true;
  EXPECT_EQ(server.post("/tokenize", "{\"content\":\"hi\"}").body,
            "{\"tokens\":[104,105],\"count\":2}");
  EXPECT_EQ(server.post("/tokenize", "{\"content\":\"h\",\"add_special\":true}").body,
            "{\"tokens\":[256,104],\"count\":2}");
  EXPECT_EQ(server.post("/detokenize", "{\"tokens\":[104,105]}").body, "{\"content\":\"hi\"}");
  EXPECT_EQ(server.post("/detokenize", "{\"tokens\":[195]}").body,
            "{\"content\":\"\xEF\xBF\xBD\"}");
  for (const char* body : {"{}", "{\"content\":5}", "{\"content\":\"a\",\"add_special\":1}", "[]",
                           "{\"content\":null}"})
    EXPECT_EQ(server.post("/tokenize", body).status, 400) << body;
  for (const char* body :
       {"{}", "{\"tokens\":5}", "{\"tokens\":[\"a\"]}", "{\"tokens\":[-1]}", "{\"tokens\":[1.5]}",
        "{\"tokens\":[258]}", "{\"tokens\":[99999999999999999999]}"}) {
    const Reply reply = server.post("/detokenize", body);
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_THAT(reply.body, HasSubstr("\"param\":\"tokens")) << body;
  }
}

TEST(Routes, F135_DeepBodiesAreRefusedOnEveryEndpoint) {
  TestServer server;
  const std::string deep = "{\"x\":" + std::string(100'000, '[');
  for (const char* path : {"/tokenize", "/detokenize", "/v1/chat/completions", "/v1/completions"}) {
    const Reply reply = server.post(path, deep);
    EXPECT_EQ(reply.status, 400) << path;
    EXPECT_THAT(reply.body, HasSubstr("nested too deep")) << path;
  }
  // The same inside a string of arguments.
  const Reply reply = server.post(
      "/v1/chat/completions",
      "{\"messages\":[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\","
      "\"arguments\":\"" +
          std::string(100'000, '[') + "\"}}]}]}");
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.body, HasSubstr("nested too deep"));
  EXPECT_EQ(server.ask("GET", "/health").status, 200);
}

}  // namespace
}  // namespace strata::server
