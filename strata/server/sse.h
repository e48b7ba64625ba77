#pragma once

#include <string>
#include <string_view>

#include "strata/server/exchange.h"

namespace strata::server {

// Server-sent events (text/event-stream), as the WHATWG HTML standard defines them.
inline Headers sse_headers() {
  return {{"Content-Type", "text/event-stream; charset=utf-8"},
          {"Cache-Control", "no-cache"},
          // Reverse proxies would keep the events back.
          {"X-Accel-Buffering", "no"}};
}

// `data` is one line: JSON without line breaks, or [DONE].
inline std::string sse_event(std::string_view data) {
  std::string text = "data: ";
  return text.append(data).append("\n\n");
}

// Seen by no client.
inline std::string sse_comment(std::string_view words) {
  std::string text = ": ";
  return text.append(words).append("\n\n");
}

}  // namespace strata::server
