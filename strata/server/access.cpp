#include "strata/server/access.h"

#include <algorithm>
#include <cstdint>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/base/text.h"
#include "strata/server/error_reply.h"

namespace strata::server {
namespace {

// "Box.lan:8080" -> "box.lan", "[::1]:80" -> "::1".
std::string host_name(std::string_view host) {
  if (host.starts_with('[')) return lower(host.substr(1, host.find(']') - 1));
  const size_t colon = host.find(':');
  // An address with several colons and no brackets has no port.
  if (colon != std::string_view::npos && host.find(':', colon + 1) != std::string_view::npos)
    return lower(host);
  std::string name = lower(host.substr(0, colon));
  if (name.size() > 1 && name.ends_with('.')) name.pop_back();
  return name;
}

// "https://a.example:8080" -> "a.example:8080".
std::string_view origin_host(std::string_view origin) {
  const size_t slashes = origin.find("://");
  return slashes == std::string_view::npos ? std::string_view() : origin.substr(slashes + 3);
}

// The time depends on the length of `given` alone.
bool equal(std::string_view given, std::string_view key) {
  uint8_t difference = given.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i)
    difference = static_cast<uint8_t>(difference | (given[i] ^ key[i % key.size()]));
  return difference == 0;
}

}  // namespace

bool is_loopback(std::string_view host) {
  const std::string name = host_name(host);
  if (name == "localhost" || name == "::1" || name.ends_with(".localhost")) return true;
  if (!name.starts_with("127.") || std::ranges::count(name, '.') != 3) return false;
  return name.find_first_not_of("0123456789.") == std::string::npos;
}

Access::Access(const Config& config)
    : keys_(config.api_keys), hosts_(config.allowed_hosts), origins_(config.cors_origins) {
  for (const std::string& key : keys_)
    if (trimmed(key).empty()) throw Error(ErrorCode::kInvalidArgument, "an API key is empty");
  if (keys_.empty() && !is_loopback(config.host))
    throw Error(ErrorCode::kInvalidArgument,
                format("host {} can be reached from other machines: give an API key "
                       "(--api-key-file, --api-key), or use 127.0.0.1",
                       config.host));
  hosts_.push_back(config.host);
  for (std::string& host : hosts_) host = host_name(host);
  for (std::string& origin : origins_) origin = lower(origin);
  any_origin_ = std::ranges::find(origins_, "*") != origins_.end();
}

bool Access::has_key(const Request& request) const {
  const std::string* given = request.header("x-api-key");
  std::string_view key = given != nullptr ? std::string_view(*given) : std::string_view();
  if (const std::string* authorization = request.header("authorization")) {
    const std::string_view text = *authorization;
    const size_t space = text.find(' ');
    if (space != std::string_view::npos && lower(text.substr(0, space)) == "bearer") {
      key = text.substr(space + 1);
      key.remove_prefix(std::min(key.find_first_not_of(' '), key.size()));
    }
  }
  bool found = false;
  for (const std::string& each : keys_) found = equal(key, each) || found;
  return found;
}

bool Access::is_ours(std::string_view host) const {
  return is_loopback(host) || std::ranges::find(hosts_, host_name(host)) != hosts_.end();
}

bool Access::is_listed(std::string_view origin) const {
  return any_origin_ || std::ranges::find(origins_, lower(origin)) != origins_.end();
}

std::optional<Response> Access::check(const Request& request, bool is_public) const {
  if (!keys_.empty()) {
    if (is_public || has_key(request)) return std::nullopt;
    return error_response(401,
                          "this server asks for an API key: send \"Authorization: Bearer KEY\"",
                          "invalid_api_key");
  }
  // HTTP/1.0 has no Host, and no browser speaks it.
  if (!request.host.empty() && !is_ours(request.host))
    return error_response(403, format("host \"{}\" is not served here", request.host),
                          "host_not_allowed");
  const std::string* origin = request.header("origin");
  if (origin == nullptr || is_listed(*origin)) return std::nullopt;
  const std::string_view host = origin_host(*origin);
  if (!host.empty() && lower(host) == lower(request.host)) return std::nullopt;
  return error_response(403, format("pages of origin \"{}\" may not use this server", *origin),
                        "origin_not_allowed");
}

Headers Access::cors_headers(const Request& request) const {
  const std::string* origin = request.header("origin");
  if (origin == nullptr || !is_listed(*origin)) return {};
  return {{"Access-Control-Allow-Origin", any_origin_ ? "*" : *origin}, {"Vary", "Origin"}};
}

Response Access::preflight(const Request& request, std::string_view methods) const {
  const std::string* origin = request.header("origin");
  Response response{204, {{"Allow", std::string(methods)}}, ""};
  if (origin == nullptr) return response;
  if (!is_listed(*origin))
    return error_response(403, format("pages of origin \"{}\" may not use this server", *origin),
                          "origin_not_allowed");
  response.headers.emplace_back("Access-Control-Allow-Methods", methods);
  // Clients of these APIs send a dozen of their own; none of them opens anything.
  const std::string* asked = request.header("access-control-request-headers");
  response.headers.emplace_back(
      "Access-Control-Allow-Headers",
      asked != nullptr ? *asked : "Authorization, Content-Type, X-Api-Key");
  response.headers.emplace_back("Access-Control-Max-Age", "600");
  return response;
}

}  // namespace strata::server
