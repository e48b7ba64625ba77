// /v1/chat/completions and /v1/completions through a real server with a fake engine.
#include "strata/server/api/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "strata/base/format.h"
#include "strata/server/testing/test_server.h"

namespace strata::server {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::RawClient;
using testing::Reply;
using testing::test_config;
using testing::TestServer;

constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kCompletions = "/v1/completions";

// A good body with this added; "" for neither.
std::string chat(const std::string& more = "") {
  return "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]" +
         (more.empty() ? "" : "," + more) + "}";
}
std::string completion(const std::string& more = "") {
  return "{\"prompt\":\"hi\"" + (more.empty() ? "" : "," + more) + "}";
}
std::string with_messages(const std::string& messages) { return "{\"messages\":" + messages + "}"; }

struct Joined {
  std::string content, reasoning, finish_reason, role;
  json usage;
  bool done = false;
  bool error = false;
};

Joined join(const Reply& reply) {
  Joined all;
  for (const std::string& data : reply.events()) {
    EXPECT_FALSE(all.done) << "something behind [DONE]: " << data;
    if (data == "[DONE]") {
      all.done = true;
      continue;
    }
    const json event = json::parse(data);  // throws for what is not UTF-8
    if (event.contains("error")) {
      all.error = true;
      continue;
    }
    if (event.contains("usage")) all.usage = event["usage"];
    if (event["choices"].empty()) continue;
    const json& choice = event["choices"][0];
    if (choice.contains("text")) all.content += choice["text"].get<std::string>();
    const json delta = choice.value("delta", json::object());
    all.content += delta.value("content", "");
    all.reasoning += delta.value("reasoning_content", "");
    all.role += delta.value("role", "");
    if (!choice["finish_reason"].is_null()) all.finish_reason = choice["finish_reason"];
  }
  return all;
}

void expect_refused(const TestServer& server, const std::string& path, const std::string& body,
                    const std::string& param) {
  const Reply reply = server.post(path, body);
  EXPECT_EQ(reply.status, 400) << body;
  const json error = json::parse(reply.body)["error"];
  EXPECT_EQ(error["type"], "invalid_request_error") << body;
  EXPECT_EQ(error["param"].is_null() ? "" : error["param"].get<std::string>(), param) << body;
  EXPECT_FALSE(error["message"].get<std::string>().empty());
}

TEST(Chat, AnswersWhole) {
  TestServer server;
  server.engine.answer_with({"he", "llo"});
  const json body = json::parse(server.post(kChat, chat("\"model\":\"whatever\"")).body);
  EXPECT_EQ(body["object"], "chat.completion");
  EXPECT_EQ(body["model"], "tiny");
  EXPECT_EQ(body["choices"].size(), 1u);
  EXPECT_EQ(body["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(body["choices"][0]["message"]["content"], "hello");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(body["usage"]["prompt_tokens"], 4);
  EXPECT_EQ(body["usage"]["completion_tokens"], 2);
  EXPECT_EQ(body["usage"]["total_tokens"], 6);
  EXPECT_EQ(body["usage"]["prompt_tokens_details"]["cached_tokens"], 1);
  const wire::Submit submit = server.engine.wait_for_submit();
  EXPECT_EQ(server.frontend.decode(submit.ids), "user:hi\n");
  EXPECT_EQ(submit.stop_ids, std::vector<int32_t>{testing::FakeFrontend::kEnd});
  EXPECT_EQ(submit.max_tokens, 512 - 8);
}

// F-034: whatever the engine sends, both modes say the same.
TEST(Chat, F034_StreamEqualsWhole) {
  TestServer server;
  const std::vector<std::vector<std::string>> scripts = {
      {},
      {""},
      {"a"},
      {"<think>", "\nwhy", "\n</th", "ink>\n\n", "so"},
      {"<think>never closes"},
      {"  lead", "ing"},
      {"\xF0\x9F", "\x98\x80"},
      {"\xE4", "\xB8", "\xAD\xE6\x96\x87"},
      {"\xF0\x9F\x91\xA8\xE2\x80", "\x8D\xF0\x9F\x91\xA9"},
      {"cut \xE4\xB8"},
      {"bad \xFF byte", "\xC3"},
      {"data: [DONE]\n\n", "\"quotes\" \\ \x01 \u2028"},
      {"</think>", "<|im_end|>"},
  };
  for (const auto& script : scripts) {
    for (const wire::Reason reason : {wire::Reason::kStop, wire::Reason::kLength}) {
      for (const char* options : {"", "\"enable_thinking\":true"}) {
        server.engine.answer_with(script, reason);
        const std::string more = options;
        const json whole = json::parse(server.post(kChat, chat(more)).body);
        const Joined stream = join(server.post(
            kChat, chat((more.empty() ? "" : more + ",") +
                        "\"stream\":true,\"stream_options\":{\"include_usage\":true}")));
        const json& message = whole["choices"][0]["message"];
        EXPECT_TRUE(stream.done);
        EXPECT_EQ(stream.content, message["content"]);
        EXPECT_EQ(stream.reasoning, message.value("reasoning_content", ""));
        EXPECT_EQ(stream.finish_reason, whole["choices"][0]["finish_reason"]);
        EXPECT_EQ(stream.usage, whole["usage"]);
        EXPECT_EQ(stream.role, "assistant");
      }
      const json whole = json::parse(server.post(kCompletions, completion()).body);
      const Joined stream = join(server.post(kCompletions, completion("\"stream\":true")));
      EXPECT_EQ(stream.content, whole["choices"][0]["text"]);
      EXPECT_EQ(stream.finish_reason, whole["choices"][0]["finish_reason"]);
    }
  }
}

TEST(Chat, F015_EachDeltaIsValidUtf8AndTheSumIsExact) {
  TestServer server;
  server.engine.answer_with({"\xF0\x9F", "\x98\x80", "\xE4", "\xB8", "\xAD", "\xF0\x9F\x91\xA8\xE2",
                             "\x80\x8D\xF0\x9F\x91", "\xA9", "\xE4"});
  const Joined stream = join(server.post(kChat, chat("\"stream\":true")));
  EXPECT_EQ(stream.content,
            "\xF0\x9F\x98\x80\xE4\xB8\xAD\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9\xEF\xBF\xBD");
  EXPECT_TRUE(stream.done);
}

TEST(Chat, F033_UsageComesOnlyWhenAsked) {
  TestServer server;
  server.engine.answer_with({"a", "b"});
  for (const char* more : {"\"stream\":true", "\"stream\":true,\"stream_options\":null",
                           "\"stream\":true,\"stream_options\":{\"include_usage\":false}"}) {
    const Reply reply = server.post(kChat, chat(more));
    EXPECT_EQ(reply.header("content-type"), "text/event-stream; charset=utf-8");
    EXPECT_EQ(reply.body.find("usage"), std::string::npos);
    EXPECT_TRUE(join(reply).done);
  }
  const Reply reply =
      server.post(kChat, chat("\"stream\":true,\"stream_options\":{\"include_usage\":true}"));
  const auto events = reply.events();
  ASSERT_GE(events.size(), 3u);
  EXPECT_EQ(events.back(), "[DONE]");
  const json last = json::parse(events[events.size() - 2]);
  EXPECT_TRUE(last["choices"].empty());
  EXPECT_EQ(last["usage"]["total_tokens"], 6);
  EXPECT_EQ(last["usage"]["prompt_tokens_details"]["cached_tokens"], 1);
  for (size_t i = 0; i + 2 < events.size(); ++i)
    EXPECT_FALSE(json::parse(events[i]).contains("usage"));
  expect_refused(server, kChat, chat("\"stream_options\":{\"include_usage\":true}"),
                 "stream_options");
}

TEST(Chat, F030_TokenLimits) {
  TestServer server;
  server.engine.answer_with({"a"}, wire::Reason::kLength);
  size_t n = 0;
  for (const auto& make : {chat, completion}) {
    const std::string path = make("") == chat() ? kChat : kCompletions;
    const auto limit_of = [&](const std::string& more) {
      const Reply reply = server.post(path, make(more));
      EXPECT_EQ(json::parse(reply.body)["choices"][0]["finish_reason"], "length") << more;
      return server.engine.wait_for_submit(++n).max_tokens;
    };
    EXPECT_EQ(limit_of("\"max_tokens\":5"), 5);
    EXPECT_EQ(limit_of("\"max_completion_tokens\":5"), 5);
    EXPECT_EQ(limit_of("\"max_tokens\":5,\"max_completion_tokens\":7"), 5);
    EXPECT_EQ(limit_of("\"max_tokens\":7,\"max_completion_tokens\":5"), 5);
    EXPECT_EQ(limit_of("\"max_tokens\":null,\"max_completion_tokens\":5"), 5);
    EXPECT_GT(limit_of("\"max_tokens\":null"), 400);
    for (const char* name : {"max_tokens", "max_completion_tokens"})
      for (const char* value : {"0", "-1", "\"5\"", "5.0", "1e2", "true", "[5]", "99999999999"})
        expect_refused(server, path, make(format("\"{}\":{}", name, value)), name);
  }
}

TEST(Chat, F032_RoomIsCountedAndRefusedWithTheNumbers) {
  TestServer server;
  server.engine.answer_with({"a"});
  const auto prompt = [](size_t n, const std::string& more = "") {
    return "{\"prompt\":\"" + std::string(n, 'x') + "\"" + more + "}";
  };
  const Reply reply = server.post(kCompletions, prompt(100, ",\"max_tokens\":16384"));
  EXPECT_EQ(reply.status, 400);
  const json error = json::parse(reply.body)["error"];
  EXPECT_EQ(error["code"], "context_length_exceeded");
  for (const char* number : {"100", "16384", "412", "512"})
    EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(number));
  EXPECT_EQ(server.post(kCompletions, prompt(100, ",\"max_tokens\":412")).status, 200);
  EXPECT_EQ(server.post(kCompletions, prompt(100, ",\"max_tokens\":413")).status, 400);
  EXPECT_EQ(server.post(kCompletions, prompt(511)).status, 200);
  EXPECT_EQ(server.post(kCompletions, prompt(512)).status, 400);
  EXPECT_EQ(server.post(kCompletions, prompt(513)).status, 400);
}

TEST(Chat, F047_OverflowIsTheSameOnEveryPathAndNeverACut) {
  TestServer server;
  server.engine.answer_with({"a"});
  for (const size_t n : {size_t{511}, size_t{512}, size_t{513}, size_t{5000}}) {
    // "user:" and the line's end are six tokens of the rendered prompt.
    const std::string content = "secret" + std::string(n - 12, 'x');
    const Reply chat_reply =
        server.post(kChat, with_messages("[{\"role\":\"user\",\"content\":\"" + content + "\"}]"));
    const Reply text_reply =
        server.post(kCompletions, "{\"prompt\":\"" + std::string(n, 'x') + "\"}");
    const int expected = n == 511 ? 200 : 400;
    EXPECT_EQ(chat_reply.status, expected) << n;
    EXPECT_EQ(text_reply.status, expected) << n;
    if (expected == 400) {
      EXPECT_THAT(chat_reply.body, HasSubstr("context_length_exceeded"));
      const std::string counted = n == 5000 ? "at least 625" : format("{}", n);
      EXPECT_THAT(chat_reply.body, HasSubstr(format("the prompt has {} tokens", counted)));
      EXPECT_THAT(text_reply.body, HasSubstr(format("the prompt has {} tokens", counted)));
    }
  }
  EXPECT_EQ(server.engine.wait_for_submit(1).ids.size(), 511u);
}

// Making tokens of much text takes long; that it cannot fit shows before.
TEST(Chat, F032_WhatCannotFitIsRefusedBeforeItIsTokenized) {
  TestServer server;
  std::atomic<int> n_encoded = 0;
  server.frontend.on_encode = [&](size_t) { ++n_encoded; };
  // With tokens of at most 8 bytes, 4089 and more are at least 512.
  for (const size_t n : {size_t{4088}, size_t{4089}, size_t{100'000}}) {
    n_encoded = 0;
    const std::string content(n - 6, 'x');  // "user:" and the line's end are six more
    const Reply reply =
        server.post(kChat, with_messages("[{\"role\":\"user\",\"content\":\"" + content + "\"}]"));
    const Reply text_reply =
        server.post(kCompletions, "{\"prompt\":\"" + std::string(n, 'x') + "\",\"max_tokens\":1}");
    for (const Reply& each : {reply, text_reply}) {
      EXPECT_EQ(each.status, 400) << n;
      EXPECT_THAT(each.body, HasSubstr("context_length_exceeded"));
      EXPECT_THAT(
          each.body,
          HasSubstr(n == 4088 ? std::string("has 4088 tokens, 1 are asked")
                              : format("has at least {} tokens, 1 are asked for the answer, 0 "
                                       "are available for it in a context of 512",
                                       (n + 7) / 8)));
    }
    EXPECT_EQ(n_encoded, n == 4088 ? 2 : 0) << n;
  }
}

TEST(Chat, F031_TheSameFieldsMeanTheSameOnEveryPath) {
  TestServer server;
  server.engine.answer_with({"a"});
  const std::string more =
      "\"temperature\":0.5,\"top_p\":0.9,\"top_k\":7,\"min_p\":0.1,\"presence_penalty\":1,"
      "\"frequency_penalty\":-1.5,\"repetition_penalty\":1.2,\"seed\":42,"
      "\"logit_bias\":{\"5\":-100,\"6\":1.5},\"stop\":[\"x\",\"yz\"],\"n\":1,\"max_tokens\":9";
  EXPECT_EQ(server.post(kChat, chat(more)).status, 200);
  EXPECT_EQ(server.post(kCompletions, completion(more)).status, 200);
  const wire::Submit a = server.engine.wait_for_submit(1);
  const wire::Submit b = server.engine.wait_for_submit(2);
  EXPECT_EQ(a.sampling, b.sampling);
  EXPECT_EQ(a.stops, b.stops);
  EXPECT_EQ(a.max_tokens, b.max_tokens);
  EXPECT_EQ(a.stop_ids, b.stop_ids);
  EXPECT_FLOAT_EQ(a.sampling.temperature, 0.5f);
  EXPECT_FLOAT_EQ(a.sampling.top_p, 0.9f);
  EXPECT_EQ(a.sampling.top_k, 7);
  EXPECT_FLOAT_EQ(a.sampling.min_p, 0.1f);
  EXPECT_FLOAT_EQ(a.sampling.presence_penalty, 1);
  EXPECT_FLOAT_EQ(a.sampling.frequency_penalty, -1.5f);
  EXPECT_FLOAT_EQ(a.sampling.repetition_penalty, 1.2f);
  EXPECT_EQ(a.sampling.seed, 42u);
  EXPECT_EQ(a.sampling.logit_bias, (std::vector<wire::LogitBias>{{5, -100}, {6, 1.5f}}));
  EXPECT_EQ(a.stops, (std::vector<std::string>{"x", "yz"}));
}

TEST(Chat, F031_WrongTypesAreNamedOnEveryPath) {
  TestServer server;
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"temperature", "\"1\""},
      {"temperature", "-0.1"},
      {"temperature", "true"},
      {"top_p", "0"},
      {"top_p", "1.1"},
      {"top_p", "\"x\""},
      {"top_k", "-1"},
      {"top_k", "1.5"},
      {"min_p", "2"},
      {"presence_penalty", "3"},
      {"frequency_penalty", "[]"},
      {"repetition_penalty", "0"},
      {"repetition_penalty", "-1"},
      {"repetition_penalty", "1e-9"},
      {"repetition_penalty", "1e9"},
      {"stream", "1"},
      {"stream", "\"true\""},
      {"stop", "5"},
      {"stop", "{}"},
      {"stop", "\"\""},
      {"logit_bias", "[]"},
      {"model", "5"},
      {"stream_options", "5"},
  };
  for (const auto& [name, value] : wrong) {
    const std::string more = format("\"{}\":{}", name, value);
    expect_refused(server, kChat, chat(more), name);
    expect_refused(server, kCompletions, completion(more), name);
  }
  expect_refused(server, kChat, chat("\"stop\":[\"a\",5]"), "stop[1]");
  expect_refused(server, kChat, chat("\"stop\":[\"\"]"), "stop[0]");
  expect_refused(server, kChat, chat("\"logit_bias\":{\"999\":1}"), "logit_bias.999");
  expect_refused(server, kChat, chat("\"logit_bias\":{\"x\":1}"), "logit_bias.x");
  expect_refused(server, kChat, chat("\"logit_bias\":{\"5\":101}"), "logit_bias.5");
  expect_refused(server, kChat, chat("\"logit_bias\":{\"05\":1}"), "logit_bias.05");
}

TEST(Chat, F035_F036_StopsAreTakenAsTheyAre) {
  TestServer server;
  server.engine.answer_with({"a"}, wire::Reason::kStopString);
  const Reply reply = server.post(
      kChat, chat("\"stop\":[\"\\n\",\"Alice:\",\"\xF0\x9F\x98\x80\",\"\\n\",\"DEFGHIJ\"]"));
  EXPECT_EQ(json::parse(reply.body)["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(server.engine.wait_for_submit().stops,
            (std::vector<std::string>{"\n", "Alice:", "\xF0\x9F\x98\x80", "DEFGHIJ"}));
}

TEST(Chat, F039_Seeds) {
  TestServer server;
  server.engine.answer_with({"a"});
  EXPECT_EQ(server.post(kChat, chat("\"seed\":7")).status, 200);
  EXPECT_EQ(server.post(kChat, chat("\"seed\":9223372036854775808")).status, 200);
  EXPECT_EQ(server.post(kChat, chat()).status, 200);
  EXPECT_EQ(server.engine.wait_for_submit(1).sampling.seed, 7u);
  EXPECT_EQ(server.engine.wait_for_submit(2).sampling.seed, 9223372036854775808ull);
  EXPECT_FALSE(server.engine.wait_for_submit(3).sampling.seed.has_value());
  for (const char* seed : {"-1", "\"42\"", "1.5", "1e3", "true", "18446744073709551616"})
    expect_refused(server, kChat, chat(format("\"seed\":{}", seed)), "seed");
  EXPECT_THAT(server.post(kChat, chat("\"seed\":18446744073709551616")).body,
              HasSubstr("must be an integer from 0 to 18446744073709551615, not a number of more "
                        "than 64 bits"));
  EXPECT_THAT(server.post(kChat, chat("\"top_k\":99999999999999999999")).body,
              HasSubstr("not a number of more than 64 bits"));
}

TEST(Chat, F040_SeveralAnswers) {
  TestServer server;
  server.engine.answer_with({"a", "b"});
  size_t n_submits = 0;
  for (const char* path : {kChat, kCompletions}) {
    const auto make = [&](const std::string& more) {
      return path == kChat ? chat(more) : completion(more);
    };
    for (const char* n : {"1", "null"}) {
      const json body = json::parse(server.post(path, make(format("\"n\":{}", n))).body);
      EXPECT_EQ(body["choices"].size(), 1u);
      ++n_submits;
    }
    const json body = json::parse(server.post(path, make("\"n\":3,\"seed\":7")).body);
    ASSERT_EQ(body["choices"].size(), 3u);
    std::set<uint64_t> seeds;
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(body["choices"][i]["index"], i);
      seeds.insert(server.engine.wait_for_submit(++n_submits).sampling.seed.value());
    }
    EXPECT_EQ(seeds.size(), 3u);
    EXPECT_TRUE(seeds.contains(7));
    // The prompt counts once.
    EXPECT_EQ(body["usage"]["prompt_tokens"], 4);
    EXPECT_EQ(body["usage"]["completion_tokens"], 6);
    const Reply stream = server.post(
        path, make("\"n\":2,\"stream\":true,\"stream_options\":{\"include_usage\":true}"));
    n_submits += 2;
    std::map<int, std::string> texts, reasons;
    for (const std::string& data : stream.events()) {
      if (data == "[DONE]") continue;
      const json event = json::parse(data);
      for (const json& choice : event["choices"]) {
        std::string& text = texts[choice["index"].get<int>()];
        text += choice.value("text", choice.value("delta", json::object()).value("content", ""));
        if (!choice["finish_reason"].is_null())
          reasons[choice["index"].get<int>()] += choice["finish_reason"].get<std::string>();
      }
    }
    EXPECT_EQ(texts, (std::map<int, std::string>{{0, "ab"}, {1, "ab"}}));
    EXPECT_EQ(reasons, (std::map<int, std::string>{{0, "stop"}, {1, "stop"}}));
    for (const char* n : {"0", "17", "128", "\"2\"", "-1", "1.0"})
      expect_refused(server, path, make(format("\"n\":{}", n)), "n");
  }
}

TEST(Chat, WhatIsNotThereIsRefusedByName) {
  TestServer server;
  const std::vector<std::pair<std::string, std::string>> fields = {
      {"tools", "\"x\""},
      {"top_logprobs", "3"},
      {"functions", "[{}]"},
      {"function_call", "{\"name\":\"f\"}"},
      {"tool_choice", "\"required\""},
      {"audio", "{\"voice\":\"x\"}"},
      {"prediction", "{\"type\":\"content\"}"},
      {"web_search_options", "{\"a\":1}"},
      {"modalities", "[\"audio\"]"},
  };
  for (const auto& [name, value] : fields)
    expect_refused(server, kChat, chat(format("\"{}\":{}", name, value)), name);
  expect_refused(server, kChat, chat("\"response_format\":{\"type\":\"xml\"}"),
                 "response_format.type");
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"echo", "true"}, {"suffix", "\"x\""}, {"logprobs", "21"}, {"best_of", "2"}})
    expect_refused(server, kCompletions, completion(format("\"{}\":{}", name, value)), name);
  server.engine.answer_with({"a"});
  EXPECT_EQ(server
                .post(kChat, chat("\"tools\":[],\"logprobs\":false,\"response_format\":"
                                  "{\"type\":\"text\"},\"tool_choice\":\"none\",\"user\":\"me\","
                                  "\"store\":false,\"metadata\":{},\"unknown\":1"))
                .status,
            200);
}

// F-140: nothing is ever fetched, whatever the address.
TEST(Chat, F140_PicturesAreRefusedUnseen) {
  TestServer server;
  for (const char* url : {"http://127.0.0.1:1/", "http://169.254.169.254/", "http://[::1]/",
                          "file:///etc/hostname", "/etc/hostname", "data:image/png;base64,AAAA"}) {
    const std::string part =
        format("{{\"type\":\"image_url\",\"image_url\":{{\"url\":\"{}\"}}}}", url);
    expect_refused(server, kChat,
                   with_messages("[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
                                 "\"a\"}," +
                                 part + "]}]"),
                   "messages[0].content[1].type");
  }
}

TEST(Chat, F041_BodiesThatAreNoRequests) {
  TestServer server;
  for (const char* body : {"[]", "5", "\"x\"", "true", "null", "{:", "", "{\"messages\":NaN}"}) {
    expect_refused(server, kChat, body, "");
    expect_refused(server, kCompletions, body, "");
  }
  expect_refused(server, kChat, "{}", "messages");
  expect_refused(server, kChat, with_messages("{}"), "messages");
  expect_refused(server, kChat, with_messages("[5]"), "messages[0]");
  expect_refused(server, kChat, with_messages("[{}]"), "messages[0].role");
  expect_refused(server, kChat, with_messages("[{\"role\":\"alien\",\"content\":\"a\"}]"),
                 "messages[0].role");
  expect_refused(server, kChat, with_messages("[{\"role\":\"user\",\"content\":5}]"),
                 "messages[0].content");
  expect_refused(server, kChat, chat("\"n\":1,\"n\":1"), "n");
  expect_refused(server, kCompletions, "{}", "prompt");
  expect_refused(server, kCompletions, "{\"prompt\":5}", "prompt");
  expect_refused(server, kCompletions, "{\"prompt\":\"\"}", "prompt");
  expect_refused(server, kCompletions, "{\"prompt\":[]}", "prompt");
  expect_refused(server, kCompletions, "{\"prompt\":[1,999]}", "prompt[1]");
  expect_refused(server, kCompletions, "{\"prompt\":[\"a\",\"b\"]}", "prompt");
  server.engine.answer_with({"a"});
  EXPECT_EQ(server.post(kChat, chat()).status, 200);
  EXPECT_EQ(server.post(kCompletions, "{\"prompt\":[104,105]}").status, 200);
  EXPECT_EQ(server.post(kCompletions, "{\"prompt\":[[104,105]]}").status, 200);
  EXPECT_EQ(server.engine.wait_for_submit(3).ids, (std::vector<int32_t>{104, 105}));
}

TEST(Chat, F141_LongListsAreRefusedQuickly) {
  TestServer server;
  std::string stops, biases, tools;
  for (int i = 0; i < 100'000; ++i) stops += (i ? "," : "") + format("\"s{}\"", i);
  for (int i = 0; i < 300'000; ++i) biases += (i ? "," : "") + format("\"{}\":1", i);
  for (int i = 0; i < 10'000; ++i) tools += i ? ",{}" : "{}";
  expect_refused(server, kChat, chat("\"stop\":[" + stops + "]"), "stop");
  expect_refused(server, kChat, chat("\"logit_bias\":{" + biases + "}"), "logit_bias");
  expect_refused(server, kChat, chat("\"tools\":[" + tools + "]"), "tools");
  expect_refused(server, kChat, chat("\"stop\":\"" + std::string(2000, 'x') + "\""), "stop");
}

TEST(Chat, F016_F017_SystemAndDeveloperMessages) {
  TestServer server;
  server.engine.answer_with({"a"});
  const auto roles = [&](const std::string& messages) {
    EXPECT_EQ(server.post(kChat, with_messages(messages)).status, 200);
    std::string text;
    for (const ChatMessage& each : server.frontend.last().messages)
      text += each.role + "=" + each.content + ";";
    return text;
  };
  EXPECT_EQ(roles("[{\"role\":\"developer\",\"content\":\"A\"},{\"role\":\"system\",\"content\":"
                  "\"B\"},{\"role\":\"user\",\"content\":\"u\"},{\"role\":\"developer\","
                  "\"content\":\"C\"}]"),
            "system=A\n\nB;user=u;system=C;");
  EXPECT_EQ(roles("[{\"role\":\"user\",\"content\":\"u\"},{\"role\":\"assistant\",\"content\":"
                  "\"a\"},{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"system\","
                  "\"content\":\"T\"},{\"role\":\"user\",\"content\":\"v\"}]"),
            "user=u;assistant=a;system=S;system=T;user=v;");
}

TEST(Chat, F018_EdgesOfTheListOfMessages) {
  TestServer server;
  server.engine.answer_with({"a"});
  const std::string call =
      "{\"id\":\"c1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":"
      "\"{\\\"a\\\":1}\"}}";
  for (const std::string& messages :
       {std::string("[{\"role\":\"system\",\"content\":\"s\"}]"),
        "[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" + call +
            "]},{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"r\"}]",
        std::string("[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"assistant\","
                    "\"content\":\"a\"}]"),
        std::string("[{\"role\":\"user\",\"content\":\"\"}]"),
        std::string("[{\"role\":\"user\",\"content\":\"u\"},{\"role\":\"assistant\"}]"),
        std::string("[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
                    "{\"type\":\"text\",\"text\":\"b\"}]}]")})
    EXPECT_EQ(server.post(kChat, with_messages(messages)).status, 200) << messages;
  EXPECT_EQ(server.frontend.last().messages.at(0).content, "ab");

  expect_refused(server, kChat, with_messages("[]"), "messages");
  expect_refused(server, kChat, with_messages("[{\"role\":\"user\",\"content\":null}]"),
                 "messages[0].content");
  expect_refused(server, kChat, with_messages("[{\"role\":\"user\",\"content\":[]}]"),
                 "messages[0].content");
  expect_refused(server, kChat, with_messages("[{\"role\":\"tool\"}]"), "messages[0].content");
  expect_refused(server, kChat, with_messages("[{\"role\":\"user\",\"content\":\"raise\"}]"),
                 "messages");
}

TEST(Chat, F023_CallsOfEarlierTurnsReachTheTemplateAsObjects) {
  TestServer server;
  server.engine.answer_with({"a"});
  const auto with_arguments = [](const std::string& arguments) {
    return with_messages(
        "[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"f\","
        "\"arguments\":" +
        arguments + "}}]}]");
  };
  for (const char* good : {"{\"a\":1}", "\"{\\\"a\\\":1}\""}) {
    EXPECT_EQ(server.post(kChat, with_arguments(good)).status, 200) << good;
    const ToolCall call = server.frontend.last().messages.at(0).tool_calls.at(0);
    EXPECT_EQ(call.name, "f");
    EXPECT_EQ(call.arguments.as_map().find("a")->as_integer(), 1);
  }
  for (const char* bad : {"\"{\"", "5", "\"[]\"", "[]", "\"null\""})
    expect_refused(server, kChat, with_arguments(bad),
                   "messages[0].tool_calls[0].function.arguments");
  EXPECT_THAT(server.post(kChat, with_arguments("\"{\"")).body,
              HasSubstr("function.arguments: the string is not valid JSON"));
  expect_refused(server, kChat,
                 with_messages("[{\"role\":\"user\",\"content\":\"a\",\"tool_calls\":[]}]"),
                 "messages[0].tool_calls");
}

TEST(Chat, TemplateVariablesKeepTheirTypes) {
  TestServer server;
  server.engine.answer_with({"a"});
  const Reply reply = server.post(
      kChat, chat("\"chat_template_kwargs\":{\"enable_thinking\":false,\"level\":3,\"x\":\"y\"},"
                  "\"reasoning_effort\":\"high\""));
  EXPECT_EQ(reply.status, 200);
  std::string seen;
  for (const auto& [name, value] : server.frontend.last().variables)
    seen += name + ":" + std::to_string(static_cast<int>(value.kind())) + " ";
  EXPECT_EQ(seen, "enable_thinking:2 level:3 x:5 reasoning_effort:5 ");
  expect_refused(server, kChat, chat("\"chat_template_kwargs\":{\"enable_thinking\":\"false\"}"),
                 "chat_template_kwargs.enable_thinking");
  expect_refused(server, kChat, chat("\"chat_template_kwargs\":{\"enable_thinking\":0}"),
                 "chat_template_kwargs.enable_thinking");
  expect_refused(server, kChat, chat("\"chat_template_kwargs\":{\"other\":\"true\"}"),
                 "chat_template_kwargs.other");
  expect_refused(server, kChat, chat("\"chat_template_kwargs\":{\"messages\":[]}"),
                 "chat_template_kwargs.messages");
  for (const char* function : {"namespace", "range", "dict", "raise_exception", "strftime_now"})
    expect_refused(server, kChat, chat(format("\"chat_template_kwargs\":{{\"{}\":1}}", function)),
                   format("chat_template_kwargs.{}", function));
  expect_refused(server, kChat, chat("\"enable_thinking\":\"true\""), "enable_thinking");
  expect_refused(server, kChat, chat("\"reasoning_effort\":\"very\""), "reasoning_effort");
  expect_refused(server, kChat,
                 chat("\"enable_thinking\":true,\"chat_template_kwargs\":{\"enable_thinking\":"
                      "true}"),
                 "enable_thinking");
}

}  // namespace
}  // namespace strata::server
