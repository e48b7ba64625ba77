#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace strata::server {

// An answer under way, as /slots tells it: no text of it.
struct RunningAnswer {
  std::string id;  // of the request
  std::string path;
  bool has_slot = false;  // the engine works on it
  int32_t prompt_tokens = 0;
  int32_t read_tokens = 0;  // of the prompt, with the cached ones
  int32_t cached_tokens = 0;
  int32_t answer_tokens = 0;
  std::chrono::steady_clock::time_point since;
};

// Those of one server. The transport's thread.
using RunningTable = std::map<uint64_t, RunningAnswer>;

}  // namespace strata::server
