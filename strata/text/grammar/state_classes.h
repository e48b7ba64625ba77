#pragma once

#include <cstddef>
#include <vector>

#include "strata/text/grammar/compiled_grammar.h"

namespace strata::text {

// For each state the first one that allows the same continuations of up to n_bytes bytes, whatever
// is on the stack below: far from the bounds of a counted repetition all its places are alike. Each
// state by itself where finding out would take more than max_work steps looked at.
std::vector<CompiledGrammar::State> alike_states(const CompiledGrammar& grammar, size_t n_bytes,
                                                 size_t max_work);

}  // namespace strata::text
