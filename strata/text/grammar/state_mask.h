#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "strata/text/grammar/compiled_grammar.h"
#include "strata/text/grammar/stack_pool.h"
#include "strata/text/grammar/token_trie.h"
#include "strata/text/grammar/work_budget.h"

namespace strata::text {

// The tokens allowed in one state as far as that does not depend on the stack below it, and where
// in the tries it begins to.
struct StateMask {
  // All tokens of the first n levels of the trie's kWords and kText.
  int n_word_levels = 0;
  int n_text_levels = 0;
  // And these: as a list while that is shorter.
  std::vector<uint32_t> tokens;
  std::vector<uint64_t> bits;
  // Nodes at which the rules above the unknown stack may have ended: tokens below them may go on in
  // the state on top of that stack. Ascending.
  std::vector<uint32_t> exits;
  // What it took to make it, as the budget counts.
  size_t work = 0;
  // What follows below the exits, by that state. The owner fills it.
  std::unordered_map<CompiledGrammar::State, std::unique_ptr<StateMask>> below;

  size_t n_bytes() const;
};

// Makes StateMasks by following automaton and tries together. One thread.
// Errors: kUnsupported when the budget is used up, of nodes and states looked at.
class MaskWalk {
 public:
  // All outlive it.
  MaskWalk(const CompiledGrammar& grammar, const TokenTrie& trie, WorkBudget& budget);

  // For texts that begin in `state`, on an unknown stack.
  StateMask start_at(CompiledGrammar::State state);
  // For texts that begin at the exits of `above`, in `state` on an unknown stack.
  StateMask below_exits(const StateMask& above, CompiledGrammar::State state);

 private:
  struct Level {
    size_t begin;  // configurations
    size_t end;
    size_t n_stacks;
  };

  // Follows the nodes first..end, children of a node of `depth`, from one configuration.
  void walk(uint32_t first, uint32_t end, uint32_t depth, CompiledGrammar::State state,
            StateMask& out);
  bool take(const Level& from, uint8_t byte);
  bool reaches_unknown(const Level& level);
  void finish(StateMask& mask) const;
  int levels_of(TokenTrie::Characters characters, CompiledGrammar::State state) const;

  const CompiledGrammar& grammar_;
  const TokenTrie& trie_;
  WorkBudget& budget_;
  StackPool pool_;
  ByteStep step_;
  std::vector<Configuration> configurations_;
  std::vector<Level> levels_;  // index: bytes behind the start of the walk
};

}  // namespace strata::text
