#pragma once

#include <array>
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

// As many as are followed at once.
inline constexpr size_t kMaxConfigurations = 512;

// What configurations become by a byte, each once. Its work is bounded, whatever the grammar: a
// byte can lead many configurations up through many rules that may have ended.
class ByteStep {
 public:
  // Of one byte, for all configurations: states looked at and pushed.
  static constexpr size_t kMaxWork = 1 << 16;

  // A new byte, whose configurations stand in the list from `first` on.
  void begin(size_t first) {
    first_ = first;
    work_ = 0;
    n_indexed_ = 0;
  }
  // Appends what `from` becomes to `out`. False beyond a limit; then `out` and the pool hold part
  // of it.
  bool add(const CompiledGrammar& grammar, StackPool& pool, Configuration from, uint8_t byte,
           std::vector<Configuration>& out);
  // Since begin().
  size_t work() const { return work_; }

 private:
  static constexpr size_t kSlots = 2 * kMaxConfigurations;

  bool add_list(StackPool& pool, const uint32_t* word, uint32_t stack,
                std::vector<Configuration>& out);
  bool put(Configuration configuration, std::vector<Configuration>& out);
  uint16_t& slot_of(Configuration configuration, const std::vector<Configuration>& out);

  size_t first_ = 0;
  size_t work_ = 0;
  size_t n_indexed_ = 0;                // 0: there are few, and no index
  std::array<uint16_t, kSlots> slots_;  // open addressing: 1 + the place behind first_; 0: empty
};

}  // namespace strata::text
