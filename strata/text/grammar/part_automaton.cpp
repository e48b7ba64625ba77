#include "strata/text/grammar/part_automaton.h"

#include <algorithm>
#include <bitset>
#include <unordered_map>
#include <utility>

#include "strata/base/error.h"
#include "strata/text/grammar/small_sets.h"

namespace strata::text {
namespace {

using StateSet = std::vector<uint32_t>;  // ascending

struct SetHash {
  size_t operator()(const StateSet& set) const {
    uint64_t hash = set.size();
    for (const uint32_t state : set) hash = (hash ^ state) * 0x9E3779B97F4A7C15u + (hash >> 29);
    return hash;
  }
};

class Determiniser {
 public:
  Determiniser(const Nfa& nfa, const ByteClasses& classes, CompileBudget& budget)
      : nfa_(nfa),
        classes_(classes),
        budget_(budget),
        seen_(nfa.first_edge.size(), 0),
        by_class_(static_cast<size_t>(classes.n_classes)) {}

  // Subsets of states as states. False if there are many more of them than states, or too many for
  // the table.
  bool run_subsets(PartAutomaton& out) {
    const size_t max_states = 8 * nfa_.first_edge.size() + 1024;
    std::unordered_map<StateSet, uint32_t, SetHash> numbers;
    std::vector<const StateSet*> sets;
    const auto number = [&](const StateSet& targets) {
      const auto [found, is_new] =
          numbers.try_emplace(closure(targets), static_cast<uint32_t>(sets.size()));
      if (is_new) sets.push_back(&found->first);
      return found->second;
    };
    number({0});
    size_t n_paid = 0;
    for (size_t i = 0; i < sets.size(); ++i) {
      if (sets.size() > max_states || !budget_.has_entries(by_class_.size())) {
        budget_.give_back_entries(n_paid);
        return false;
      }
      budget_.spend_entries(by_class_.size());
      n_paid += by_class_.size();
      out.states.emplace_back();
      collect(*sets[i]);
      PartAutomaton::State& state = out.states.back();
      state.is_final = is_final_;
      uint32_t last = 0;
      const StateSet* last_targets = nullptr;
      for (uint32_t c = 0; c < by_class_.size(); ++c) {
        if (by_class_[c].empty()) continue;
        // Neighbouring classes mostly lead to the same place.
        if (last_targets == nullptr || *last_targets != by_class_[c]) last = number(by_class_[c]);
        last_targets = &by_class_[c];
        state.edges.push_back({c, last});
      }
      for (const auto& [part, targets] : by_part_) state.calls.push_back({part, number(targets)});
    }
    return true;
  }

  // The states as they are, with the empty edges folded in.
  void run_states(PartAutomaton& out) {
    constexpr uint32_t kNone = UINT32_MAX;
    std::vector<uint32_t> numbers(nfa_.first_edge.size(), kNone);
    std::vector<StateSet> sets{closure({0})};
    for (size_t i = 0; i < sets.size(); ++i) {
      out.states.emplace_back();
      collect(sets[i]);
      budget_.spend_entries(by_class_.size());
      PartAutomaton::State& state = out.states.back();
      state.is_final = is_final_;
      const auto each_target = [&](const StateSet& targets, auto&& visit) {
        for (const uint32_t target : closure(targets)) {
          if (numbers[target] == kNone) {
            numbers[target] = static_cast<uint32_t>(sets.size());
            sets.push_back({target});
          }
          visit(numbers[target]);
        }
      };
      for (uint32_t c = 0; c < by_class_.size(); ++c) {
        if (by_class_[c].empty()) continue;
        each_target(by_class_[c], [&](uint32_t to) { state.edges.push_back({c, to}); });
      }
      for (const auto& [part, targets] : by_part_) {
        const uint32_t called = part;
        each_target(targets, [&](uint32_t to) { state.calls.push_back({called, to}); });
      }
    }
  }

 private:
  // All that empty edges reach from the set, of it the states that do something.
  StateSet closure(const StateSet& set) {
    ++round_;
    StateSet todo;
    StateSet useful;
    const auto visit = [&](uint32_t state) {
      if (seen_[state] == round_) return;
      seen_[state] = round_;
      todo.push_back(state);
    };
    for (const uint32_t state : set) visit(state);
    size_t steps = 0;
    while (!todo.empty()) {
      const uint32_t state = todo.back();
      todo.pop_back();
      bool does_something = state == nfa_.end;
      for (uint32_t e = nfa_.first_edge[state]; e != 0; e = nfa_.edges[e - 1].next) {
        const Nfa::Edge& edge = nfa_.edges[e - 1];
        ++steps;
        if (edge.kind == Nfa::Kind::kEmpty) {
          visit(edge.to);
        } else {
          does_something = true;
        }
      }
      if (does_something) useful.push_back(state);
    }
    budget_.spend(steps + useful.size() + 1);
    std::sort(useful.begin(), useful.end());
    return useful;
  }

  // Where the edges of a closed set lead, before empty edges: by_class_, by_part_, is_final_.
  void collect(const StateSet& set) {
    for (StateSet& targets : by_class_) targets.clear();
    by_part_.clear();
    is_final_ = false;
    size_t steps = static_cast<size_t>(classes_.n_classes) / 8;
    for (const uint32_t state : set) {
      is_final_ = is_final_ || state == nfa_.end;
      for (uint32_t e = nfa_.first_edge[state]; e != 0; e = nfa_.edges[e - 1].next) {
        const Nfa::Edge& edge = nfa_.edges[e - 1];
        if (edge.kind == Nfa::Kind::kBytes) {
          const uint32_t last = classes_.of[edge.last];
          for (uint32_t c = classes_.of[edge.first]; c <= last; ++c) {
            by_class_[c].push_back(edge.to);
            ++steps;
          }
        } else if (edge.kind == Nfa::Kind::kCall) {
          by_part_.emplace_back(edge.part, StateSet{edge.to});
          ++steps;
        }
      }
    }
    budget_.spend(steps);
    for (StateSet& targets : by_class_) make_set(targets);
    merge_calls();
  }

  void merge_calls() {
    std::sort(by_part_.begin(), by_part_.end());
    size_t n = 0;
    for (size_t i = 0; i < by_part_.size(); ++i) {
      if (n > 0 && by_part_[n - 1].first == by_part_[i].first) {
        by_part_[n - 1].second.push_back(by_part_[i].second[0]);
      } else {
        if (n != i) by_part_[n] = std::move(by_part_[i]);
        ++n;
      }
    }
    by_part_.resize(n);
    for (auto& [part, targets] : by_part_) make_set(targets);
  }

  const Nfa& nfa_;
  const ByteClasses& classes_;
  CompileBudget& budget_;
  std::vector<uint32_t> seen_;  // the last round that came by
  uint32_t round_ = 0;
  std::vector<StateSet> by_class_;
  std::vector<std::pair<uint32_t, StateSet>> by_part_;
  bool is_final_ = false;
};

void drop_dead_states(PartAutomaton& automaton) {
  std::vector<PartAutomaton::State>& states = automaton.states;
  std::vector<std::vector<uint32_t>> from(states.size());
  std::vector<uint8_t> alive(states.size(), 0);
  std::vector<uint32_t> todo;
  const auto enter = [&](uint32_t state) {
    if (alive[state]) return;
    alive[state] = 1;
    todo.push_back(state);
  };
  for (uint32_t i = 0; i < states.size(); ++i) {
    uint32_t last = UINT32_MAX;
    for (const PartAutomaton::Edge& edge : states[i].edges) {
      if (edge.to != last) from[edge.to].push_back(i);
      last = edge.to;
    }
    for (const PartAutomaton::Call& call : states[i].calls) from[call.to].push_back(i);
    if (states[i].is_final) enter(i);
  }
  while (!todo.empty()) {
    const uint32_t state = todo.back();
    todo.pop_back();
    for (const uint32_t before : from[state]) enter(before);
  }
  alive[0] = 1;
  std::vector<uint32_t> number(states.size(), 0);
  uint32_t n = 0;
  for (uint32_t i = 0; i < states.size(); ++i) {
    if (alive[i]) number[i] = n++;
  }
  for (uint32_t i = 0; i < states.size(); ++i) {
    if (!alive[i]) continue;
    PartAutomaton::State state = std::move(states[i]);
    std::erase_if(state.edges, [&](const PartAutomaton::Edge& edge) { return !alive[edge.to]; });
    std::erase_if(state.calls, [&](const PartAutomaton::Call& call) { return !alive[call.to]; });
    for (PartAutomaton::Edge& edge : state.edges) edge.to = number[edge.to];
    for (PartAutomaton::Call& call : state.calls) call.to = number[call.to];
    states[number[i]] = std::move(state);
  }
  states.resize(n);
}

}  // namespace

ByteClasses byte_classes(const std::vector<Nfa>& nfas) {
  std::bitset<257> begins;  // bytes that begin a class
  for (const Nfa& nfa : nfas) {
    for (const Nfa::Edge& edge : nfa.edges) {
      if (edge.kind != Nfa::Kind::kBytes) continue;
      begins.set(edge.first);
      begins.set(static_cast<size_t>(edge.last) + 1);
    }
  }
  ByteClasses classes;
  for (size_t byte = 1; byte < 256; ++byte) {
    if (begins[byte]) ++classes.n_classes;
    classes.of[byte] = static_cast<uint8_t>(classes.n_classes - 1);
  }
  return classes;
}

CompileBudget::CompileBudget(size_t steps, size_t entries)
    : WorkBudget(steps, "the grammar is too complex: it would take too long to compile"),
      entries_left_(entries) {}

void CompileBudget::spend_entries(size_t entries) {
  if (entries > entries_left_) {
    throw Error(ErrorCode::kUnsupported,
                "the grammar is too large: its tables would not fit; fewer or smaller repetitions "
                "help");
  }
  entries_left_ -= entries;
}

PartAutomaton make_automaton(const Nfa& nfa, const ByteClasses& classes, CompileBudget& budget) {
  PartAutomaton automaton;
  Determiniser determiniser(nfa, classes, budget);
  if (!determiniser.run_subsets(automaton)) {
    automaton = {};
    determiniser.run_states(automaton);
  }
  drop_dead_states(automaton);
  return automaton;
}

}  // namespace strata::text
