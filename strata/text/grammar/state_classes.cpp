#include "strata/text/grammar/state_classes.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <unordered_map>

namespace strata::text {
namespace {

using State = CompiledGrammar::State;

// One round of Moore's refinement: states stay together while every byte leads them to states that
// were together before. After n rounds nothing of n bytes tells them apart.
class Refinement {
 public:
  explicit Refinement(const CompiledGrammar& grammar)
      : grammar_(grammar), first_(grammar.n_states()) {
    for (int byte = 255; byte >= 0; --byte) bytes_of_classes_.push_back(static_cast<uint8_t>(byte));
    const auto same = [&](uint8_t a, uint8_t b) {
      return grammar.byte_class(a) == grammar.byte_class(b);
    };
    bytes_of_classes_.erase(std::unique(bytes_of_classes_.begin(), bytes_of_classes_.end(), same),
                            bytes_of_classes_.end());
  }

  size_t work() const { return first_.size() * bytes_of_classes_.size(); }
  const std::vector<State>& first() const { return first_; }

  // False: nothing was parted.
  bool round() {
    std::vector<State> next(first_.size());
    std::unordered_map<uint64_t, State> by_hash;
    size_t n_before = 0, n_now = 0;
    for (State s = 0; s < next.size(); ++s) {
      const auto [found, is_new] = by_hash.try_emplace(hash(s), s);
      // What only hashes alike stays by itself, which is never wrong.
      next[s] = is_new || equal(found->second, s) ? found->second : s;
      n_before += first_[s] == s ? 1 : 0;
      n_now += next[s] == s ? 1 : 0;
    }
    first_ = std::move(next);
    return n_now != n_before;
  }

 private:
  // Visits what a state does, in words.
  template <class Visit>
  void describe(State s, const Visit& visit) const {
    visit(first_[s]);
    visit(grammar_.is_final(s) ? 1U : 0U);
    for (const uint8_t byte : bytes_of_classes_) {
      const CompiledGrammar::Step step = grammar_.step(s, byte);
      if (!CompiledGrammar::is_list(step)) {
        visit(step == 0 ? 0U : 1 + first_[step]);
        continue;
      }
      const uint32_t* word = grammar_.list(step);
      uint32_t n = *word++;
      visit(CompiledGrammar::kIsList | n);
      for (; n > 0; --n) {
        visit(first_[*word++]);
        uint32_t n_pushes = *word++;
        visit(n_pushes);
        for (; n_pushes > 0; --n_pushes) visit(first_[*word++]);
      }
    }
  }
  uint64_t hash(State s) const {
    uint64_t value = 0;
    describe(s, [&](uint32_t word) {
      value = (value ^ word) * 0x9E3779B97F4A7C15u;
      value ^= value >> 29;
    });
    return value;
  }
  bool equal(State a, State b) const {
    std::vector<uint32_t> words;
    describe(a, [&](uint32_t word) { words.push_back(word); });
    size_t at = 0;
    bool same = true;
    describe(b, [&](uint32_t word) {
      same = same && at < words.size() && words[at] == word;
      ++at;
    });
    return same && at == words.size();
  }

  const CompiledGrammar& grammar_;
  std::vector<uint8_t> bytes_of_classes_;
  std::vector<State> first_;  // of those that each state is still together with; at first all
};

}  // namespace

std::vector<State> alike_states(const CompiledGrammar& grammar, size_t n_bytes, size_t max_work) {
  Refinement refinement(grammar);
  size_t work = 0;
  // One round more: whether a rule may end behind the last byte.
  for (size_t i = 0; i <= n_bytes; ++i) {
    work += refinement.work();
    if (work > max_work) {
      std::vector<State> each(grammar.n_states());
      std::iota(each.begin(), each.end(), State{0});
      return each;
    }
    if (!refinement.round()) break;
  }
  return refinement.first();
}

}  // namespace strata::text
