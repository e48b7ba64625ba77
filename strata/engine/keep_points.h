#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "strata/text/tokenizer.h"

namespace strata::engine {

// Tokens of a prompt after which its state is kept, rising: where it parts from another
// conversation, where its first message ends (many conversations begin with the same one) and its
// last one begins, and every few hundred tokens (at least an eighth of the prompt, in whole chunks).
// None within PrefixCache::kLeastTokens of what is there already (n_cached) or of nothing, nor, but
// for the end of the first message, of another; each leaves a token to compute.
// boundaries: where messages begin. Without them a message begins at a control token behind an
// ordinary one. n_common: what the prompt shares with some other conversation.
std::vector<size_t> keep_points(std::span<const int32_t> text, std::span<const int32_t> boundaries,
                                size_t n_cached, size_t n_common, size_t chunk,
                                const text::Tokenizer& tokenizer);

}  // namespace strata::engine
