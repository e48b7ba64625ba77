#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/server/config.h"
#include "strata/server/exchange.h"

namespace strata::server {

// 127.0.0.0/8, ::1 and the names that stand for them; brackets allowed, case ignored.
bool is_loopback(std::string_view host);

// Who may talk to the server. Immutable; any thread.
// - With keys: every request needs one, as "Authorization: Bearer KEY" or "x-api-key: KEY", except
//   for public paths. Compared in a time that does not depend on the key's bytes.
// - Without keys a web page somewhere else could use the visitor's browser to reach a server on his
//   own machine, so the Host must be ours (else 403: a foreign name made to point here) and the
//   Origin, if there is one, ours or listed (else 403).
class Access {
 public:
  // Errors: kInvalidArgument for an empty key, and for a host that is not loopback without keys.
  explicit Access(const Config& config);

  // The refusal, if there is one. `is_public`: answered without a key.
  std::optional<Response> check(const Request& request, bool is_public) const;

  // What lets a listed page read the answer; empty for others.
  Headers cors_headers(const Request& request) const;
  // The answer to a preflight (OPTIONS with an Origin).
  Response preflight(const Request& request, std::string_view methods) const;

 private:
  bool has_key(const Request& request) const;
  bool is_ours(std::string_view host) const;
  bool is_listed(std::string_view origin) const;

  std::vector<std::string> keys_;
  std::vector<std::string> hosts_;
  std::vector<std::string> origins_;
  bool any_origin_ = false;
};

}  // namespace strata::server
