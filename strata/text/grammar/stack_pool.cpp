#include "strata/text/grammar/stack_pool.h"

#include <algorithm>

namespace strata::text {
namespace {

constexpr size_t kFirstSlots = 32;

bool add(Configuration configuration, size_t first, std::vector<Configuration>& out) {
  const auto begin = out.begin() + static_cast<std::ptrdiff_t>(first);
  if (std::find(begin, out.end(), configuration) != out.end()) return true;
  if (out.size() - first >= kMaxConfigurations) return false;
  out.push_back(configuration);
  return true;
}

bool add_list(StackPool& pool, const uint32_t* word, uint32_t stack, size_t first,
              std::vector<Configuration>& out) {
  for (uint32_t n = *word++; n > 0; --n) {
    Configuration to{*word++, stack};
    for (uint32_t n_pushes = *word++; n_pushes > 0; --n_pushes) {
      to.stack = pool.push(*word++, to.stack);
      if (to.stack == StackPool::kNone) return false;
    }
    if (!add(to, first, out)) return false;
  }
  return true;
}

}  // namespace

size_t StackPool::slot_of(CompiledGrammar::State state, uint32_t below) const {
  const size_t mask = slots_.size() - 1;
  const uint64_t hash = (uint64_t{state} << 32 | below) * 0x9E3779B97F4A7C15u;
  size_t slot = static_cast<size_t>(hash >> 32) & mask;
  while (slots_[slot] != 0) {
    const Node& node = nodes_[slots_[slot]];
    if (node.state == state && node.below == below) break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

uint32_t StackPool::push(CompiledGrammar::State state, uint32_t below) {
  if (nodes_.size() * 2 > slots_.size()) rehash();
  const size_t slot = slot_of(state, below);
  if (slots_[slot] != 0) return slots_[slot];
  const uint32_t depth = nodes_[below].depth + 1;
  if (depth > kMaxDepth || nodes_.size() >= kMaxStacks) return kNone;
  nodes_.push_back({state, below, depth});
  slots_[slot] = static_cast<uint32_t>(nodes_.size()) - 1;
  return slots_[slot];
}

void StackPool::rehash() {
  slots_.assign(std::max(kFirstSlots, slots_.size() * 2), 0);
  for (size_t i = kUnknown + 1; i < nodes_.size(); ++i) {
    slots_[slot_of(nodes_[i].state, nodes_[i].below)] = static_cast<uint32_t>(i);
  }
}

void StackPool::truncate(size_t size) {
  // Newest first: no older stack was placed behind a newer one, so no search breaks off early.
  while (nodes_.size() > size) {
    slots_[slot_of(nodes_.back().state, nodes_.back().below)] = 0;
    nodes_.pop_back();
  }
}

void StackPool::keep(std::vector<Configuration>& configurations) {
  std::vector<uint32_t> number(nodes_.size(), 0);
  for (const Configuration& it : configurations) {
    for (uint32_t stack = it.stack; stack > kUnknown && number[stack] == 0; stack = below(stack)) {
      number[stack] = 1;
    }
  }
  std::vector<Node> kept(nodes_.begin(), nodes_.begin() + 2);
  number[kUnknown] = kUnknown;
  for (size_t i = kUnknown + 1; i < nodes_.size(); ++i) {
    if (number[i] == 0) continue;
    number[i] = static_cast<uint32_t>(kept.size());
    kept.push_back({nodes_[i].state, number[nodes_[i].below], nodes_[i].depth});
  }
  nodes_ = std::move(kept);
  slots_.clear();
  if (nodes_.size() > 2) {
    while (slots_.size() < 2 * nodes_.size())
      slots_.resize(std::max(kFirstSlots, slots_.size() * 2));
    std::fill(slots_.begin(), slots_.end(), 0);
    for (size_t i = kUnknown + 1; i < nodes_.size(); ++i) {
      slots_[slot_of(nodes_[i].state, nodes_[i].below)] = static_cast<uint32_t>(i);
    }
  }
  for (Configuration& it : configurations) it.stack = number[it.stack];
}

bool advance(const CompiledGrammar& grammar, StackPool& pool, Configuration from, uint8_t byte,
             size_t first, std::vector<Configuration>& out) {
  while (true) {
    const CompiledGrammar::Step step = grammar.step(from.state, byte);
    if (CompiledGrammar::is_list(step)) {
      if (!add_list(pool, grammar.list(step), from.stack, first, out)) return false;
    } else if (step != 0) {
      if (!add({step, from.stack}, first, out)) return false;
    }
    if (from.stack <= StackPool::kUnknown || !grammar.is_final(from.state)) return true;
    from = {pool.top(from.stack), pool.below(from.stack)};
  }
}

}  // namespace strata::text
