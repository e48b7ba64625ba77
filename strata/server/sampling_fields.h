#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strata/server/fields.h"
#include "strata/server/frontend.h"
#include "strata/wire/messages.h"

namespace strata::server {

inline constexpr size_t kMaxStops = 16;
inline constexpr size_t kMaxStopBytes = 1024;
inline constexpr int kMaxAnswers = 16;
inline constexpr size_t kMaxLogitBias = wire::kMaxLogitBiases;

// The fields that all endpoints which write text share, with one meaning everywhere.
struct GenerationFields {
  wire::Sampling sampling;
  std::vector<std::string> stops;
  // The smaller of max_tokens and max_completion_tokens; absent: as many as there is room for.
  std::optional<int32_t> max_tokens;
  bool stream = false;
  bool include_usage = false;
  int n = 1;                    // answers
  int32_t n_top_logprobs = -1;  // -1: none
};

// What the APIs call differently. Null: not there.
struct FieldNames {
  const char* stop = "stop";
  const char* max_tokens = "max_tokens";
  const char* also_max_tokens = "max_completion_tokens";
  bool has_n = true;
};

// Errors: kInvalidArgument naming the field; kUnsupported for a field that would change the answer
// and is not there yet.
GenerationFields read_generation_fields(const Fields& body, const wire::Sampling& defaults,
                                        const Frontend& frontend, const FieldNames& names = {});

// Refuses these members unless they are absent, null, or say "no": false, "", [] or {}. A number is
// always a wish, 0 as well: "logprobs": 0 asks for the log-probability of each token.
void refuse_unless_neutral(const Fields& body, std::initializer_list<const char*> names);

}  // namespace strata::server
