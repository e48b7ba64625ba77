#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "strata/text/grammar/compiled_grammar.h"
#include "strata/text/grammar/matcher.h"
#include "strata/text/grammar/state_mask.h"
#include "strata/text/grammar/token_trie.h"
#include "strata/text/grammar/work_budget.h"

namespace strata::text {

class Tokenizer;

// Which tokens may come next, for one grammar and one vocabulary. What a state of the grammar
// allows is worked out when it is first met and kept; after that a mask is a copy and a few lists.
// Sessions of one grammar share it. One thread at a time.
class TokenMasks {
 public:
  static constexpr size_t kDefaultCacheBytes = size_t{64} << 20;
  // Of one mask: some tens of walks over all tokens of a large vocabulary, which is what the worst
  // grammars of use take; a quarter of a second or so.
  static constexpr size_t kDefaultWork = 40'000'000;

  // Beyond max_cache_bytes nothing more is kept: masks stay right and become slow.
  TokenMasks(std::shared_ptr<const CompiledGrammar> grammar, std::shared_ptr<const TokenTrie> trie,
             size_t max_cache_bytes = kDefaultCacheBytes, size_t max_work = kDefaultWork);
  ~TokenMasks();
  TokenMasks(const TokenMasks&) = delete;
  TokenMasks& operator=(const TokenMasks&) = delete;

  // Sets the bits of the tokens that `matcher` accepts, of the end tokens if it may end, and clears
  // the others. False: none is set; the vocabulary lacks the bytes that must follow.
  // Shapes: `mask` trie().n_words() words, token i in bit i % 64 of word i / 64. `matcher` follows
  // the same grammar.
  // Errors: kUnsupported if that takes more than max_work; the mask is undefined. Whether it does
  //         depends on where the matcher stands and not on what is kept: work that was done once
  //         counts each time.
  bool mask(const Matcher& matcher, std::span<uint64_t> mask);

  const CompiledGrammar& grammar() const { return *grammar_; }
  // For the matchers that follow it.
  const std::shared_ptr<const CompiledGrammar>& shared_grammar() const { return grammar_; }
  const TokenTrie& trie() const { return *trie_; }
  size_t n_cache_bytes() const { return n_cache_bytes_; }

 private:
  class Spare;  // masks that the cache has no room for

  StateMask& mask_of(CompiledGrammar::State state, Spare& spare, WorkBudget& budget);
  StateMask& mask_below(StateMask& above, CompiledGrammar::State state, Spare& spare,
                        WorkBudget& budget);
  void apply(const StateMask& mask, std::span<uint64_t> out, WorkBudget& budget) const;
  void apply_chain(const Matcher& matcher, Configuration it, Spare& spare, WorkBudget& budget,
                   std::span<uint64_t> out);
  bool reserve(size_t n_bytes);

  // Owners: also the sessions' matchers.
  std::shared_ptr<const CompiledGrammar> grammar_;
  // Owners: the masks of all grammars of a tokenizer.
  std::shared_ptr<const TokenTrie> trie_;
  const size_t max_cache_bytes_;
  const size_t max_work_;
  size_t n_cache_bytes_ = 0;
  const std::vector<CompiledGrammar::State> alike_;  // the state whose mask serves each
  std::vector<std::unique_ptr<StateMask>> by_state_;
};

// The tokens of the bytes that must follow, as the tokenizer writes them, without those at the end
// that a longer token might take the place of: they need no forward pass. Empty: there is a choice,
// or the text may end. Errors: as Matcher::accept().
std::vector<int32_t> forced_tokens(const Matcher& matcher, const TokenTrie& trie,
                                   const Tokenizer& tokenizer, size_t max_bytes = 256);

}  // namespace strata::text
