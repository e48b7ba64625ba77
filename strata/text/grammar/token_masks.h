#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <span>
#include <vector>

#include "strata/text/grammar/compiled_grammar.h"
#include "strata/text/grammar/matcher.h"
#include "strata/text/grammar/state_mask.h"
#include "strata/text/grammar/token_trie.h"

namespace strata::text {

class Tokenizer;

// Which tokens may come next, for one grammar and one vocabulary. What a state of the grammar
// allows is worked out when it is first met and kept; after that a mask is a copy and a few lists.
// Any thread, also several at once: sessions of one grammar share it.
class TokenMasks {
 public:
  static constexpr size_t kDefaultCacheBytes = size_t{64} << 20;

  // Beyond max_cache_bytes nothing more is kept: masks stay right and become slow.
  TokenMasks(std::shared_ptr<const CompiledGrammar> grammar, std::shared_ptr<const TokenTrie> trie,
             size_t max_cache_bytes = kDefaultCacheBytes);
  ~TokenMasks();
  TokenMasks(const TokenMasks&) = delete;
  TokenMasks& operator=(const TokenMasks&) = delete;

  // Sets the bits of the tokens that `matcher` accepts, of the end tokens if it may end, and clears
  // the others. False: none is set; the vocabulary lacks the bytes that must follow.
  // Shapes: `mask` trie().n_words() words, token i in bit i % 64 of word i / 64. `matcher` follows
  // the same grammar.
  bool mask(const Matcher& matcher, std::span<uint64_t> mask) const;

  const CompiledGrammar& grammar() const { return *grammar_; }
  // For the matchers that follow it.
  const std::shared_ptr<const CompiledGrammar>& shared_grammar() const { return grammar_; }
  const TokenTrie& trie() const { return *trie_; }
  size_t n_cache_bytes() const { return n_cache_bytes_.load(std::memory_order_relaxed); }

 private:
  class Spare;  // masks that the cache has no room for

  const StateMask& mask_of(CompiledGrammar::State state, Spare& spare) const;
  const StateMask& mask_below(const StateMask& above, CompiledGrammar::State state,
                              Spare& spare) const;
  void apply(const StateMask& mask, std::span<uint64_t> out) const;
  void apply_chain(const Matcher& matcher, Configuration it, Spare& spare,
                   std::span<uint64_t> out) const;
  bool reserve(size_t n_bytes) const;

  // Owners: also the sessions' matchers, and the front that keeps compiled grammars.
  std::shared_ptr<const CompiledGrammar> grammar_;
  // Owners: the masks of all grammars of a tokenizer.
  std::shared_ptr<const TokenTrie> trie_;
  const size_t max_cache_bytes_;
  mutable std::atomic<size_t> n_cache_bytes_{0};
  mutable std::vector<std::atomic<const StateMask*>> by_state_;  // owned
  mutable std::shared_mutex below_mutex_;                        // of all StateMask::below
};

// The tokens of the bytes that must follow, as the tokenizer writes them, without those at the end
// that a longer token might take the place of: they need no forward pass. Empty: there is a choice,
// or the text may end.
std::vector<int32_t> forced_tokens(const Matcher& matcher, const TokenTrie& trie,
                                   const Tokenizer& tokenizer, size_t max_bytes = 256);

}  // namespace strata::text
