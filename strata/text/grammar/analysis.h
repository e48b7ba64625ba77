#pragma once

#include <cstdint>
#include <vector>

#include "strata/text/grammar/grammar.h"

namespace strata::text {

// What the compiler knows about a grammar before it builds the automaton. Indexed by node.
// A part is a piece of the grammar with an automaton of its own, reached by a call that pushes on
// the stack. Everything else is copied to where it is used: within a part the automaton can be made
// deterministic and a mask need not look below the stack.
struct GrammarAnalysis {
  std::vector<uint8_t> nullable;      // matches the empty text
  std::vector<uint8_t> productive;    // matches some text at all
  std::vector<uint8_t> called_rule;   // indexed by rule: its references are calls
  std::vector<uint8_t> called_child;  // of a kRepeat: the child is a part
};

// Errors: kInvalidArgument for a rule without a definition, left recursion (naming rules and lines)
//         and a root that matches nothing.
GrammarAnalysis analyse(const Grammar& grammar);

}  // namespace strata::text
