#include "strata/engine/admission.h"

#include <algorithm>

#include "strata/base/format.h"

namespace strata::engine {

std::string objection(const wire::Submit& submit, const model::Instance& instance) {
  const int64_t n_context = instance.options().max_context;
  const int64_t n_prompt = static_cast<int64_t>(submit.ids.size());
  const int32_t n_vocab = instance.model().info().n_vocab;
  const std::vector<wire::LogitBias>& biases = submit.sampling.logit_bias;
  if (n_prompt == 0) return "the prompt is empty";
  if (submit.max_tokens < 1) {
    return format("{} tokens are asked for; at least 1 is made", submit.max_tokens);
  }
  if (n_prompt + submit.max_tokens > n_context) {
    return format("the prompt has {} tokens and {} are asked for; the context holds {}", n_prompt,
                  submit.max_tokens, n_context);
  }
  if (biases.size() > static_cast<size_t>(wire::kMaxLogitBiases)) {
    return format("there are {} logit biases, at most {} are taken", biases.size(),
                  wire::kMaxLogitBiases);
  }
  if (static_cast<int64_t>(submit.sent.size()) > submit.max_tokens) {
    return format("{} tokens were sent already, {} are asked for", submit.sent.size(),
                  submit.max_tokens);
  }
  const auto in_vocabulary = [&](int32_t id) { return id >= 0 && id < n_vocab; };
  if (!std::ranges::all_of(submit.ids, in_vocabulary) ||
      !std::ranges::all_of(submit.sent, in_vocabulary) ||
      !std::ranges::all_of(biases, in_vocabulary, &wire::LogitBias::id) ||
      (submit.reasoning && !std::ranges::all_of(submit.reasoning->wrap_up, in_vocabulary))) {
    return format("a token id is outside the vocabulary of {}", n_vocab);
  }
  if (submit.reasoning && (submit.reasoning->begin.empty() || submit.reasoning->close.empty())) {
    return "a tag of the reasoning is empty";
  }
  if (submit.n_top_logprobs > wire::kMaxTopLogprobs) {
    return format("{} alternatives are asked for, at most {} are told", submit.n_top_logprobs,
                  wire::kMaxTopLogprobs);
  }
  return "";
}

bool has_room(const wire::Submit& submit, const model::StatePools& pools) {
  const int64_t tokens = static_cast<int64_t>(submit.ids.size()) + submit.max_tokens;
  const int64_t page = pools.spec().page_tokens;
  return pools.n_free_slots() > 0 && pools.n_unreserved_pages() >= (tokens + page - 1) / page;
}

}  // namespace strata::engine
