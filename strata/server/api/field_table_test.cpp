#include "strata/server/api/field_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "strata/base/format.h"
#include "strata/server/testing/test_server.h"

namespace strata::server {
namespace {

using nlohmann::json;
using testing::Reply;
using testing::TestServer;

std::string good_body(std::string_view path) {
  if (path.ends_with("chat/completions") || path == "/apply-template")
    return R"({"messages":[{"role":"user","content":"hi"}]})";
  if (path == "/v1/completions") return R"({"prompt":"hi"})";
  if (path.starts_with("/v1/messages"))
    return R"({"max_tokens":5,"messages":[{"role":"user","content":"hi"}]})";
  if (path == "/v1/responses") return R"({"input":"hi"})";
  if (path == "/tokenize") return R"({"content":"hi"})";
  return R"({"tokens":[1]})";
}

// A value that no field of this type takes, and one that says yes.
json wrong(std::string_view type) {
  return type.find("string") == std::string_view::npos ? json("x") : json(5.5);
}
json wish(std::string_view type) {
  if (type.starts_with("boolean")) return true;
  if (type.starts_with("integer")) return 1;
  if (type.starts_with("object")) return {{"a", 1}};
  if (type.starts_with("array")) return json::array({json::object()});
  return "x";
}

TEST(FieldTable, IsTrue) {
  TestServer server;
  server.engine.answer_with({"a"});
  for (const EndpointRow& row : endpoint_table()) {
    if (row.method == "GET") {
      EXPECT_EQ(server.ask("GET", row.path).status, 200) << row.path;
      continue;
    }
    EXPECT_EQ(server.post(row.path, good_body(row.path)).status, 200) << row.path;
    const auto check = [&](const FieldRow& field) {
      const std::string name(field.name);
      json body = json::parse(good_body(row.path));
      const std::string what = std::string(row.path) + " " + name;
      if (field.use == FieldUse::kIgnored) {
        for (const json& value : {wrong(field.type), wish(field.type)}) {
          body[name] = value;
          EXPECT_EQ(server.post(row.path, body.dump()).status, 200) << what;
        }
        return;
      }
      body[name] = field.use == FieldUse::kTaken ? wrong(field.type) : wish(field.type);
      const Reply reply = server.post(row.path, body.dump());
      EXPECT_EQ(reply.status, 400) << what;
      const std::string message = json::parse(reply.body)["error"]["message"];
      EXPECT_TRUE(message.find(name) != std::string::npos) << what << ": " << message;
      body[name] = nullptr;
      const bool needed = json::parse(good_body(row.path)).contains(name);
      if (!needed) {
        EXPECT_EQ(server.post(row.path, body.dump()).status, 200) << what;
      }
    };
    for (const FieldRow& field : row.fields) check(field);
    for (const FieldRow& field : row.shared_fields) check(field);
  }
}

TEST(FieldTable, TheDocumentDescribesEachEndpoint) {
  TestServer server;
  const Reply reply = server.ask("GET", "/openapi.json");
  EXPECT_EQ(reply.status, 200);
  const json document = json::parse(reply.body);
  EXPECT_EQ(document["openapi"], "3.1.0");
  EXPECT_EQ(document["paths"].size(), endpoint_table().size());
  EXPECT_TRUE(document["paths"]["/v1/chat/completions"]["post"]["requestBody"]["content"]
                      ["application/json"]["schema"]["properties"]
                          .contains("tools"));
}

TEST(FieldTable, ThePageIsWrittenFromIt) {
  std::ifstream in(std::string(STRATA_SOURCE_DIR) + "/docs/api-fields.md");
  const std::string page{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const std::string written = ::testing::TempDir() + "api-fields.md";
  if (page != fields_page()) std::ofstream(written) << fields_page();
  EXPECT_EQ(page, fields_page()) << "take " << written << " as docs/api-fields.md";
}

}  // namespace
}  // namespace strata::server
