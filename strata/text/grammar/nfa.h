#pragma once

#include <cstdint>
#include <vector>

#include "strata/text/grammar/analysis.h"
#include "strata/text/grammar/grammar.h"

namespace strata::text {

// One part of a grammar as an automaton over bytes that may also step over a call of another part.
struct Nfa {
  enum class Kind : uint8_t { kBytes, kCall, kEmpty };
  struct Edge {
    uint32_t to = 0;
    uint32_t next = 0;  // of the same state: index + 1; 0: none
    uint32_t part = 0;  // kCall
    Kind kind = Kind::kEmpty;
    uint8_t first = 0;  // kBytes
    uint8_t last = 0;
  };
  std::vector<uint32_t> first_edge;  // one a state: index + 1; 0: none
  std::vector<Edge> edges;
  uint32_t end = 0;  // the state that accepts; the start is state 0
};

// The parts that the root needs; the root is part 0. A part that is called reads at least one byte
// there: where it may be empty, an edge leads around the call.
// Errors: kUnsupported beyond the limits of the grammar.
std::vector<Nfa> build_nfas(const Grammar& grammar, const GrammarAnalysis& analysis);

}  // namespace strata::text
