#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "strata/text/grammar/grammar.h"
#include "strata/text/grammar/part_automaton.h"

namespace strata::text {

// A grammar as a table: states by byte classes, with a stack of states to go back to where a rule
// contains itself. Deterministic but where two rules begin alike or the table would explode; then
// several stacks are followed at once. Immutable; any thread.
class CompiledGrammar {
 public:
  using State = uint32_t;

  CompiledGrammar(const std::vector<PartAutomaton>& parts, const ByteClasses& classes,
                  CompileBudget& budget);

  State start() const { return kStart; }
  uint32_t n_states() const { return n_states_; }
  int n_byte_classes() const { return n_classes_; }
  // The rule of this state may end here: then go on in the state on top of the stack.
  bool is_final(State state) const { return final_[state] != 0; }

  // What a byte does in a state: nothing (0), one plain step (the next state), or a list().
  using Step = uint32_t;
  static constexpr Step kIsList = 0x80000000u;
  static constexpr bool is_list(Step step) { return (step & kIsList) != 0; }
  Step step(State state, uint8_t byte) const {
    return steps_[size_t{state} * static_cast<size_t>(n_classes_) + classes_.of[byte]];
  }
  // Bytes of a class do the same in every state; classes ascend with the bytes.
  uint8_t byte_class(uint8_t byte) const { return classes_.of[byte]; }
  // Several steps, or one that pushes: a count, then for each the next state, the number of states
  // to push, and those, the lowest first.
  const uint32_t* list(Step step) const { return lists_.data() + (step & ~kIsList); }

  // The byte that alone leads out of a state, without its end: kNoByte, kManyBytes or the byte.
  static constexpr int16_t kNoByte = -1;
  static constexpr int16_t kManyBytes = 256;
  int16_t only_byte(State state) const { return only_byte_[state]; }

  // Memory held.
  size_t n_bytes() const;

 private:
  friend class CompiledGrammarBuilder;
  static constexpr State kStart = 1;  // 0: no state

  ByteClasses classes_;
  int n_classes_ = 1;
  uint32_t n_states_ = 0;
  std::vector<Step> steps_;     // [n_states, n_classes]
  std::vector<uint8_t> final_;  // [n_states]
  std::vector<int16_t> only_byte_;
  std::vector<uint32_t> lists_;
};

// Errors: kInvalidArgument for left recursion, a missing rule, a root that matches nothing;
//         kUnsupported beyond the limits of the grammar. Takes at most a second or so.
// Shared by the sessions that follow it and by the masks made for it.
std::shared_ptr<const CompiledGrammar> compile(const Grammar& grammar);

}  // namespace strata::text
