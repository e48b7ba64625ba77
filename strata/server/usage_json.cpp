#include "strata/server/usage_json.h"

#include <chrono>
#include <nlohmann/json.hpp>

namespace strata::server {
namespace {

Json usage_json(const wire::Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"completion_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}}};
}

Json timings_json(const Totals& end) {
  const auto rate = [](int n, double ms) { return ms > 0 && n > 0 ? n * 1000.0 / ms : 0.0; };
  const int n_read = end.usage.prompt_tokens - end.usage.cached_tokens;
  // The first token comes with the end of the prompt.
  const int n_decoded = end.usage.completion_tokens - 1;
  return {{"queue_ms", end.timings.queue_ms},
          {"prompt_ms", end.timings.prompt_ms},
          {"decode_ms", end.timings.decode_ms},
          {"draft_ms", end.timings.draft_ms},
          {"drafts_guessed", end.drafts.guessed},
          {"drafts_right", end.drafts.right},
          {"passes", end.drafts.passes},
          {"prompt_tokens_per_s", rate(n_read, end.timings.prompt_ms)},
          {"decode_tokens_per_s", rate(n_decoded, end.timings.decode_ms)}};
}

}  // namespace

void add_end(Json& body, const Totals& end) {
  body["usage"] = usage_json(end.usage);
  body["timings"] = timings_json(end);
}

int64_t unix_time() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

}  // namespace strata::server
