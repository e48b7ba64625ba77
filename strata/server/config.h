#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "strata/wire/messages.h"

namespace strata::server {

// Everything the server can be told, filled in by the command line, constant afterwards.
struct Config {
  std::string host = "127.0.0.1";  // a name or a literal address; [] around IPv6 allowed
  uint16_t port = 8080;            // 0: any free one
  // Any of these opens the API. None: no key is asked for, and only loopback may be bound.
  // An empty key is refused.
  std::vector<std::string> api_keys;
  // Names under which browsers reach this server besides localhost and `host` ("box.lan").
  // Looked at only without keys.
  std::vector<std::string> allowed_hosts;
  // Origins of other web pages that may use the API ("https://chat.example"), or "*".
  std::vector<std::string> cors_origins;

  // PEM files; both or none. With them the server speaks TLS 1.2 and 1.3 alone.
  std::string tls_cert_file;  // with the chain behind it
  std::string tls_key_file;

  // Folders of this machine that an answer does not name: an error of status 500 or above and the
  // reasons of /health have file names alone. The longest first.
  std::vector<std::string> private_folders;

  std::string version;              // of the program, for /props
  std::string model_name;           // as /v1/models and every answer report it
  wire::Sampling default_sampling;  // for what a request leaves out

  // A stream that is silent this long gets a comment, so that no client gives up on a long prompt.
  std::chrono::milliseconds keepalive{3'000};

  size_t max_header_bytes = 32 << 10;
  size_t max_body_bytes = 16 << 20;
  size_t max_bodies_bytes = 256 << 20;  // of all requests that are being received or parsed
  // Of a stream whose client does not read, in front of an event and beside the first one; then it
  // is cut.
  size_t max_unsent_bytes = 1 << 20;
  int max_connections = 512;
  int max_queue = 128;  // answers that wait for a slot; more are refused with 429
  int n_workers = 2;    // threads that parse, render and tokenize
  // Bodies from this size on are worked on by all but one of them, behind smaller ones.
  size_t large_body_bytes = 64 << 10;

  std::chrono::milliseconds header_timeout{10'000};  // from the first byte of a request
  std::chrono::milliseconds body_timeout{60'000};    // for all of it
  std::chrono::milliseconds idle_timeout{75'000};    // between requests
  std::chrono::milliseconds write_timeout{30'000};   // without a byte taken by the client
  std::chrono::milliseconds drain_limit{4'000};      // for running requests after SIGTERM
};

}  // namespace strata::server
