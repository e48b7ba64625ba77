#include "strata/server/access.h"

#include <gtest/gtest.h>

#include <string>

#include "strata/base/error.h"

namespace strata::server {
namespace {

Request request(Headers headers, std::string host = "localhost:8080") {
  Request result;
  result.method = "POST";
  result.path = "/v1/models";
  result.host = std::move(host);
  result.headers = std::move(headers);
  return result;
}

int status(const Access& access, const Request& request, bool is_public = false) {
  const auto refusal = access.check(request, is_public);
  return refusal ? refusal->status : 200;
}

TEST(Access, KnowsLoopback) {
  for (const char* host : {"127.0.0.1", "127.1.2.3:80", "localhost", "LOCALHOST:1", "[::1]",
                           "[::1]:8080", "::1", "a.localhost", "localhost."})
    EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"0.0.0.0", "127.0.0.1.evil.example", "127.evil.example.x", "[::]",
                           "::", "10.0.0.1", "localhost.evil.example", "", "[", "128.0.0.1"})
    EXPECT_FALSE(is_loopback(host)) << host;
}

TEST(Access, F138_OtherAddressesNeedAKey) {
  for (const char* host : {"0.0.0.0", "::", "192.168.1.2", "box.lan"}) {
    Config config;
    config.host = host;
    EXPECT_THROW(Access{config}, Error) << host;
    config.api_keys = {"secret"};
    EXPECT_NO_THROW(Access{config}) << host;
  }
}

TEST(Access, F137_AnEmptyKeyIsAnErrorNotNoKey) {
  for (const char* key : {"", " ", "\n"}) {
    Config config;
    config.api_keys = {"good", key};
    EXPECT_THROW(Access{config}, Error);
  }
}

TEST(Access, F137_KeysInAllForms) {
  Config config;
  config.api_keys = {"secret", "other"};
  const Access access(config);
  EXPECT_EQ(status(access, request({})), 401);
  EXPECT_EQ(status(access, request({{"authorization", "Bearer secret"}})), 200);
  EXPECT_EQ(status(access, request({{"authorization", "bearer other"}})), 200);
  EXPECT_EQ(status(access, request({{"authorization", "BEARER  secret"}})), 200);
  EXPECT_EQ(status(access, request({{"x-api-key", "secret"}})), 200);
  for (const char* wrong : {"Bearer secre", "Bearer secrets", "Bearer SECRET", "Bearer ", "Bearer",
                            "secret", "Basic secret", "Bearer secret secret", ""})
    EXPECT_EQ(status(access, request({{"authorization", wrong}})), 401) << wrong;
  EXPECT_EQ(status(access, request({{"x-api-key", ""}})), 401);
  EXPECT_EQ(status(access, request({}), true), 200);
  // With keys a browser somewhere else can do no harm without one.
  EXPECT_EQ(status(access, request({{"authorization", "Bearer secret"}}, "box.example")), 200);
}

TEST(Access, F138_ForeignHostsAndOriginsAreRefusedWithoutKeys) {
  const Access access{Config{}};
  EXPECT_EQ(status(access, request({})), 200);
  EXPECT_EQ(status(access, request({}, "127.0.0.1:8080")), 200);
  EXPECT_EQ(status(access, request({}, "evil.example")), 403);
  EXPECT_EQ(status(access, request({}, "evil.example"), true), 403);
  EXPECT_EQ(status(access, request({{"origin", "http://localhost:8080"}})), 200);
  EXPECT_EQ(status(access, request({{"origin", "https://evil.example"}})), 403);
  EXPECT_EQ(status(access, request({{"origin", "null"}})), 403);
  // Another server on this machine is another origin.
  EXPECT_EQ(status(access, request({{"origin", "http://localhost:3000"}})), 403);
  EXPECT_EQ(status(access, request({{"origin", "http://evil.example"}}, "evil.example")), 403);
}

TEST(Access, ListedHostsAndOriginsAreLetIn) {
  Config config;
  config.allowed_hosts = {"Box.lan"};
  config.cors_origins = {"https://Chat.example"};
  const Access access(config);
  EXPECT_EQ(status(access, request({}, "box.lan:8080")), 200);
  const Request listed = request({{"origin", "https://chat.example"}});
  EXPECT_EQ(status(access, listed), 200);
  EXPECT_EQ(access.cors_headers(listed).at(0).second, "https://chat.example");
  EXPECT_EQ(access.preflight(listed, "POST").status, 204);
  const Request other = request({{"origin", "https://evil.example"}});
  EXPECT_TRUE(access.cors_headers(other).empty());
  EXPECT_EQ(access.preflight(other, "POST").status, 403);
}

TEST(Access, AnyOrigin) {
  Config config;
  config.cors_origins = {"*"};
  const Access access(config);
  const Request any = request({{"origin", "https://any.example"}});
  EXPECT_EQ(status(access, any), 200);
  EXPECT_EQ(access.cors_headers(any).at(0).second, "*");
}

}  // namespace
}  // namespace strata::server
