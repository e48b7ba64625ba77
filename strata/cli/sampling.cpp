#include "strata/cli/sampling.h"

namespace strata::cli {

wire::Sampling sampling_of(const Settings& s) {
  wire::Sampling sampling;
  sampling.temperature = static_cast<float>(s.temp);
  sampling.top_k = static_cast<int32_t>(s.top_k);
  sampling.top_p = static_cast<float>(s.top_p);
  sampling.min_p = static_cast<float>(s.min_p);
  sampling.presence_penalty = static_cast<float>(s.presence_penalty);
  sampling.frequency_penalty = static_cast<float>(s.frequency_penalty);
  sampling.repetition_penalty = static_cast<float>(s.repetition_penalty);
  sampling.repetition_window = static_cast<int32_t>(s.repeat_window);
  if (s.seed) sampling.seed = static_cast<uint64_t>(*s.seed);
  return sampling;
}

}  // namespace strata::cli
