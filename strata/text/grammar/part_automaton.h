#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "strata/text/grammar/grammar.h"
#include "strata/text/grammar/nfa.h"
#include "strata/text/grammar/work_budget.h"

namespace strata::text {

// Bytes that no edge tells apart share a class; classes ascend with the bytes.
struct ByteClasses {
  std::array<uint8_t, 256> of{};
  int n_classes = 1;
};
ByteClasses byte_classes(const std::vector<Nfa>& nfas);

// A part without empty edges. State 0 is the start. At most one edge a class leaves a state, unless
// the deterministic automaton would have been too large.
struct PartAutomaton {
  struct Edge {
    uint32_t byte_class;
    uint32_t to;
  };
  struct Call {
    uint32_t part;
    uint32_t to;  // where it goes on behind the call
  };
  struct State {
    std::vector<Edge> edges;  // ascending classes
    std::vector<Call> calls;
    bool is_final = false;
  };
  std::vector<State> states;
};

// What the compiler may still do, and how large its tables may become.
class CompileBudget : public WorkBudget {
 public:
  CompileBudget(size_t steps, size_t entries);
  // Errors: kUnsupported when less is left.
  void spend_entries(size_t entries);
  bool has_entries(size_t entries) const { return entries <= entries_left_; }
  void give_back_entries(size_t entries) { entries_left_ += entries; }

 private:
  size_t entries_left_;
};

// States from which no end can be reached are gone, but for the start.
// Errors: kUnsupported if the budget does not suffice.
PartAutomaton make_automaton(const Nfa& nfa, const ByteClasses& classes, CompileBudget& budget);

}  // namespace strata::text
