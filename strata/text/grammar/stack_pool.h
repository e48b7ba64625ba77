#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/text/grammar/compiled_grammar.h"

namespace strata::text {

// Where a text may stand: a state, and the states to go back to.
struct Configuration {
  CompiledGrammar::State state = 0;
  uint32_t stack = 0;  // of a StackPool
  bool operator==(const Configuration&) const = default;
};

// Stacks that share what lies below. Equal stacks have equal numbers, so that configurations can be
// compared. A stack exists until truncate() or keep(); parents have smaller numbers.
class StackPool {
 public:
  static constexpr uint32_t kBottom = 0;   // the end of the grammar's root may follow
  static constexpr uint32_t kUnknown = 1;  // something is below that the pool does not know
  static constexpr uint32_t kNone = UINT32_MAX;

  static constexpr uint32_t kMaxDepth = 4096;
  static constexpr size_t kMaxStacks = 1 << 20;

  StackPool() : nodes_(2) {}

  // kNone beyond a limit.
  uint32_t push(CompiledGrammar::State state, uint32_t below);
  // Of a stack above kUnknown.
  CompiledGrammar::State top(uint32_t stack) const { return nodes_[stack].state; }
  uint32_t below(uint32_t stack) const { return nodes_[stack].below; }

  uint32_t depth(uint32_t stack) const { return nodes_[stack].depth; }
  size_t size() const { return nodes_.size(); }
  // Forgets the newest stacks.
  void truncate(size_t size);
  // Forgets all stacks but those of the configurations, and renumbers these.
  void keep(std::vector<Configuration>& configurations);

 private:
  struct Node {
    CompiledGrammar::State state = 0;
    uint32_t below = 0;
    uint32_t depth = 0;
  };

  size_t slot_of(CompiledGrammar::State state, uint32_t below) const;
  void rehash();

  std::vector<Node> nodes_;
  // Open addressing, linear; a power of two. 0: empty, since the first nodes are never looked for.
  std::vector<uint32_t> slots_;
};

// Appends what a configuration becomes by a byte, each once among out[first..].
// False beyond a limit; then `out` and the pool hold part of it.
bool advance(const CompiledGrammar& grammar, StackPool& pool, Configuration from, uint8_t byte,
             size_t first, std::vector<Configuration>& out);

// As many as are followed at once.
inline constexpr size_t kMaxConfigurations = 512;

}  // namespace strata::text
