#include "strata/text/grammar/state_mask.h"

#include <algorithm>

#include "strata/text/grammar/small_sets.h"

namespace strata::text {
namespace {

using Characters = TokenTrie::Characters;
using State = CompiledGrammar::State;
using States = std::vector<State>;

// More states than this after some characters, or a longer way to see that they repeat, and the
// tokens are walked one by one instead.
constexpr size_t kMaxStates = 64;
constexpr int kMaxSteps = 33;

bool same_class(const CompiledGrammar& grammar, int a, int b) {
  return grammar.byte_class(static_cast<uint8_t>(a)) == grammar.byte_class(static_cast<uint8_t>(b));
}

// Where the bytes first..last lead from each state; false if some byte leads nowhere, pushes or is
// ambiguous.
bool step_all(const CompiledGrammar& grammar, const States& from, int first, int last, States& to) {
  for (const State state : from) {
    for (int byte = first; byte <= last; ++byte) {
      if (byte > first && same_class(grammar, byte - 1, byte)) continue;
      const CompiledGrammar::Step step = grammar.step(state, static_cast<uint8_t>(byte));
      if (step == 0 || CompiledGrammar::is_list(step)) return false;
      if (to.empty() || to.back() != step) to.push_back(step);
    }
  }
  make_set(to);
  return to.size() <= kMaxStates;
}

// Well-formed UTF-8 beyond ASCII. Source: The Unicode Standard 15.0, table 3-7.
struct Form {
  uint8_t first_min;
  uint8_t first_max;
  uint8_t second_min;
  uint8_t second_max;
  int n_more;  // bytes 80..BF behind the second
};
constexpr Form kForms[] = {
    {0xC2, 0xDF, 0x80, 0xBF, 0}, {0xE0, 0xE0, 0xA0, 0xBF, 1}, {0xE1, 0xEC, 0x80, 0xBF, 1},
    {0xED, 0xED, 0x80, 0x9F, 1}, {0xEE, 0xEF, 0x80, 0xBF, 1}, {0xF0, 0xF0, 0x90, 0xBF, 2},
    {0xF1, 0xF3, 0x80, 0xBF, 2}, {0xF4, 0xF4, 0x80, 0x8F, 2},
};

// Where one character of the set leads from a state; false as step_all().
bool step_character(const CompiledGrammar& grammar, Characters characters, State state,
                    States& to) {
  const States start{state};
  for (int byte = ' '; byte < 0x7F; ++byte) {
    if (!is_of(characters, static_cast<uint8_t>(byte))) continue;
    if (is_of(characters, static_cast<uint8_t>(byte - 1)) && same_class(grammar, byte - 1, byte)) {
      continue;
    }
    if (!step_all(grammar, start, byte, byte, to)) return false;
  }
  for (const Form& form : kForms) {
    States at;
    States next;
    if (!step_all(grammar, start, form.first_min, form.first_max, at)) return false;
    if (!step_all(grammar, at, form.second_min, form.second_max, next)) return false;
    for (int i = 0; i < form.n_more; ++i) {
      at.swap(next);
      next.clear();
      if (!step_all(grammar, at, 0x80, 0xBF, next)) return false;
    }
    to.insert(to.end(), next.begin(), next.end());
  }
  make_set(to);
  return true;
}

// As many characters of the set, whichever they are, can follow in this state: at least.
int free_characters(const CompiledGrammar& grammar, Characters characters, State state) {
  States seen{state};
  States now{state};
  for (int n = 0; n < kMaxSteps; ++n) {
    States next;
    for (const State it : now) {
      if (!step_character(grammar, characters, it, next)) return n;
    }
    now.clear();
    for (const State it : next) {
      if (std::find(seen.begin(), seen.end(), it) == seen.end()) now.push_back(it);
    }
    make_set(now);
    if (now.empty()) return INT32_MAX;
    seen.insert(seen.end(), now.begin(), now.end());
    if (seen.size() > kMaxStates) return n + 1;
  }
  return kMaxSteps;
}

}  // namespace

size_t StateMask::n_bytes() const {
  return sizeof(*this) + tokens.capacity() * sizeof(tokens[0]) + bits.capacity() * sizeof(bits[0]) +
         exits.capacity() * sizeof(exits[0]);
}

MaskWalk::MaskWalk(const CompiledGrammar& grammar, const TokenTrie& trie, WorkBudget& budget)
    : grammar_(grammar), trie_(trie), budget_(budget), levels_(trie.max_depth() + 1) {}

int MaskWalk::levels_of(Characters characters, State state) const {
  const int n = free_characters(grammar_, characters, state);
  int levels = 0;
  while (levels < TokenTrie::kLevels && TokenTrie::kMaxCharacters[levels] <= n) ++levels;
  return levels;
}

StateMask MaskWalk::start_at(State state) {
  const size_t left = budget_.left();
  StateMask mask;
  mask.n_word_levels = levels_of(Characters::kWords, state);
  if (mask.n_word_levels > 0) mask.n_text_levels = levels_of(Characters::kText, state);
  for (const TokenTrie::Part& part : trie_.parts()) {
    if (part.characters == Characters::kWords && part.level < mask.n_word_levels) continue;
    if (part.characters == Characters::kText && part.level < mask.n_text_levels) continue;
    walk(part.begin, part.end, 0, state, mask);
  }
  finish(mask);
  mask.work = left - budget_.left();
  return mask;
}

StateMask MaskWalk::below_exits(const StateMask& above, State state) {
  const size_t left = budget_.left();
  budget_.spend(above.exits.size());
  StateMask mask;
  for (const uint32_t exit : above.exits) {
    const TokenTrie::Node& node = trie_.nodes()[exit];
    walk(exit + 1, node.end, node.depth, state, mask);
  }
  if (grammar_.is_final(state)) {
    mask.exits.insert(mask.exits.end(), above.exits.begin(), above.exits.end());
  }
  finish(mask);
  mask.work = left - budget_.left();
  return mask;
}

void MaskWalk::walk(uint32_t first, uint32_t end, uint32_t depth, State state, StateMask& out) {
  const std::span<const TokenTrie::Node> nodes = trie_.nodes();
  configurations_.assign(1, {state, StackPool::kUnknown});
  pool_.truncate(2);
  levels_[0] = {0, 1, pool_.size()};
  for (uint32_t i = first; i < end;) {
    const TokenTrie::Node& node = nodes[i];
    const size_t level = node.depth - depth;
    const Level& from = levels_[level - 1];
    if (!take(from, node.byte)) {
      i = node.end;
      continue;
    }
    levels_[level] = {from.end, configurations_.size(), pool_.size()};
    for (uint32_t token = node.token; token != TokenTrie::kNoToken; token = trie_.same(token)) {
      out.tokens.push_back(token);
    }
    if (node.end > i + 1 && reaches_unknown(levels_[level])) out.exits.push_back(i);
    ++i;
  }
}

// Replaces what lies behind `from` by what its configurations become. False: nothing.
bool MaskWalk::take(const Level& from, uint8_t byte) {
  budget_.spend(1);
  if (from.end - from.begin == 1) {
    const Configuration it = configurations_[from.begin];
    const CompiledGrammar::Step step = grammar_.step(it.state, byte);
    if (!CompiledGrammar::is_list(step) &&
        (it.stack <= StackPool::kUnknown || !grammar_.is_final(it.state))) {
      if (step == 0) return false;
      configurations_.resize(from.end);
      pool_.truncate(from.n_stacks);
      configurations_.push_back({step, it.stack});
      return true;
    }
  }
  configurations_.resize(from.end);
  pool_.truncate(from.n_stacks);
  step_.begin(from.end);
  bool fits = true;
  for (size_t i = from.begin; i < from.end && fits; ++i) {
    const Configuration it = configurations_[i];
    fits = step_.add(grammar_, pool_, it, byte, configurations_);
  }
  budget_.spend(step_.work());
  // Too deep or too ambiguous: accept() would refuse it as well.
  return fits && configurations_.size() > from.end;
}

bool MaskWalk::reaches_unknown(const Level& level) {
  for (size_t i = level.begin; i < level.end; ++i) {
    Configuration it = configurations_[i];
    while (grammar_.is_final(it.state)) {
      if (it.stack == StackPool::kUnknown) return true;
      budget_.spend(1);
      it = {pool_.top(it.stack), pool_.below(it.stack)};
    }
  }
  return false;
}

void MaskWalk::finish(StateMask& mask) const {
  make_set(mask.exits);
  if (mask.tokens.size() * sizeof(uint32_t) > trie_.n_words() * sizeof(uint64_t)) {
    mask.bits.assign(trie_.n_words(), 0);
    for (const uint32_t token : mask.tokens) mask.bits[token / 64] |= uint64_t{1} << (token % 64);
    mask.tokens = {};
  }
  mask.tokens.shrink_to_fit();
  mask.exits.shrink_to_fit();
}

}  // namespace strata::text
