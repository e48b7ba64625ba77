#include "strata/text/grammar/stack_pool.h"

#include <algorithm>

namespace strata::text {
namespace {

constexpr size_t kFirstSlots = 32;

uint64_t hash_of(Configuration it) {
  return (uint64_t{it.state} << 32 | it.stack) * 0x9E3779B97F4A7C15u;
}

}  // namespace

size_t StackPool::slot_of(CompiledGrammar::State state, uint32_t below) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = static_cast<size_t>(hash_of({state, below}) >> 32) & mask;
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

uint16_t& ByteStep::slot_of(Configuration configuration, const std::vector<Configuration>& out) {
  size_t slot = static_cast<size_t>(hash_of(configuration) >> 32) % kSlots;
  while (slots_[slot] != 0 && out[first_ + slots_[slot] - 1] != configuration)
    slot = (slot + 1) % kSlots;
  return slots_[slot];
}

bool ByteStep::put(Configuration configuration, std::vector<Configuration>& out) {
  // Most bytes lead to one or two.
  constexpr size_t kFew = 8;
  const size_t n = out.size() - first_;
  if (n < kFew) {
    const auto begin = out.begin() + static_cast<std::ptrdiff_t>(first_);
    if (std::find(begin, out.end(), configuration) == out.end()) out.push_back(configuration);
    return true;
  }
  if (n_indexed_ == 0) slots_.fill(0);
  for (; n_indexed_ < n; ++n_indexed_)
    slot_of(out[first_ + n_indexed_], out) = static_cast<uint16_t>(n_indexed_ + 1);
  uint16_t& slot = slot_of(configuration, out);
  if (slot != 0) return true;
  if (n >= kMaxConfigurations) return false;
  out.push_back(configuration);
  slot = static_cast<uint16_t>(++n_indexed_);
  return true;
}

bool ByteStep::add_list(StackPool& pool, const uint32_t* word, uint32_t stack,
                        std::vector<Configuration>& out) {
  for (uint32_t n = *word++; n > 0; --n) {
    Configuration to{*word++, stack};
    uint32_t n_pushes = *word++;
    work_ += 1 + n_pushes;
    if (work_ > kMaxWork) return false;
    for (; n_pushes > 0; --n_pushes) {
      to.stack = pool.push(*word++, to.stack);
      if (to.stack == StackPool::kNone) return false;
    }
    if (!put(to, out)) return false;
  }
  return true;
}

bool ByteStep::add(const CompiledGrammar& grammar, StackPool& pool, Configuration from,
                   uint8_t byte, std::vector<Configuration>& out) {
  while (true) {
    if (++work_ > kMaxWork) return false;
    const CompiledGrammar::Step step = grammar.step(from.state, byte);
    if (CompiledGrammar::is_list(step)) {
      if (!add_list(pool, grammar.list(step), from.stack, out)) return false;
    } else if (step != 0) {
      if (!put({step, from.stack}, out)) return false;
    }
    if (from.stack <= StackPool::kUnknown || !grammar.is_final(from.state)) return true;
    from = {pool.top(from.stack), pool.below(from.stack)};
  }
}

}  // namespace strata::text
