#include "strata/text/grammar/compiled_grammar.h"

#include <algorithm>
#include <map>
#include <utility>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/grammar/analysis.h"
#include "strata/text/grammar/nfa.h"

namespace strata::text {

// Joins the parts: a call becomes the first bytes of the part that is called.
class CompiledGrammarBuilder {
 public:
  CompiledGrammarBuilder(CompiledGrammar& out, const std::vector<PartAutomaton>& parts,
                         CompileBudget& budget)
      : out_(out), parts_(parts), budget_(budget), entries_(parts.size()) {}

  void run() {
    uint32_t n = CompiledGrammar::kStart;
    for (const PartAutomaton& part : parts_) {
      first_.push_back(n);
      n += static_cast<uint32_t>(part.states.size());
    }
    STRATA_CHECK(n < CompiledGrammar::kIsList);
    out_.n_states_ = n;
    out_.steps_.assign(size_t{n} * static_cast<size_t>(out_.n_classes_), 0);
    out_.final_.assign(n, 0);
    out_.only_byte_.assign(n, CompiledGrammar::kNoByte);
    for (uint32_t part = 0; part < parts_.size(); ++part) {
      for (uint32_t i = 0; i < parts_[part].states.size(); ++i) {
        out_.final_[first_[part] + i] = parts_[part].states[i].is_final;
        write(first_[part] + i, steps_of(part, i, 0));
      }
    }
    find_only_bytes();
  }

 private:
  struct Item {
    uint32_t byte_class;
    std::vector<uint32_t> words;  // next state, number of pushes, pushes
    auto operator<=>(const Item&) const = default;
  };

  // A part that is called so deep in front of its first byte nests without reading.
  static constexpr int kMaxCallDepth = 1000;

  const std::vector<Item>& entry(uint32_t part, int depth) {
    if (!entries_[part]) {
      entries_[part] = std::make_unique<std::vector<Item>>(steps_of(part, 0, depth));
    }
    return *entries_[part];
  }

  std::vector<Item> steps_of(uint32_t part, uint32_t index, int depth) {
    if (depth > kMaxCallDepth) {
      throw Error(ErrorCode::kUnsupported,
                  format("rules call each other more than {} deep without reading anything",
                         kMaxCallDepth));
    }
    const PartAutomaton::State& state = parts_[part].states[index];
    std::vector<Item> items;
    for (const PartAutomaton::Edge& edge : state.edges) {
      items.push_back({edge.byte_class, {first_[part] + edge.to, 0}});
    }
    budget_.spend(items.size());
    for (const PartAutomaton::Call& call : state.calls) {
      // A rule that ends with the call needs no way back: right recursion takes no stack.
      const PartAutomaton::State& behind = parts_[part].states[call.to];
      const bool returns = !behind.edges.empty() || !behind.calls.empty();
      for (const Item& item : entry(call.part, depth + 1)) {
        Item mine{item.byte_class, {item.words[0], item.words[1] + (returns ? 1 : 0)}};
        if (returns) mine.words.push_back(first_[part] + call.to);
        mine.words.insert(mine.words.end(), item.words.begin() + 2, item.words.end());
        budget_.spend(mine.words.size());
        items.push_back(std::move(mine));
      }
    }
    std::sort(items.begin(), items.end());
    items.erase(std::unique(items.begin(), items.end()), items.end());
    return items;
  }

  void write(uint32_t state, const std::vector<Item>& items) {
    for (size_t i = 0; i < items.size();) {
      size_t end = i;
      while (end < items.size() && items[end].byte_class == items[i].byte_class) ++end;
      auto& step =
          out_.steps_[size_t{state} * static_cast<size_t>(out_.n_classes_) + items[i].byte_class];
      if (end == i + 1 && items[i].words[1] == 0) {
        step = items[i].words[0];
      } else {
        step = list({items.begin() + static_cast<std::ptrdiff_t>(i),
                     items.begin() + static_cast<std::ptrdiff_t>(end)});
      }
      i = end;
    }
  }

  // Equal lists, as after neighbouring bytes, are kept once.
  CompiledGrammar::Step list(std::span<const Item> items) {
    std::vector<uint32_t> words{static_cast<uint32_t>(items.size())};
    for (const Item& item : items) {
      words.insert(words.end(), item.words.begin(), item.words.end());
    }
    budget_.spend(words.size());
    const auto begin = static_cast<uint32_t>(out_.lists_.size());
    const auto [found, is_new] = lists_.try_emplace(std::move(words), begin);
    if (is_new) {
      budget_.spend_entries(found->first.size());
      out_.lists_.insert(out_.lists_.end(), found->first.begin(), found->first.end());
    }
    return found->second | CompiledGrammar::kIsList;
  }

  void find_only_bytes() {
    for (uint32_t state = 0; state < out_.n_states_; ++state) {
      int16_t& only = out_.only_byte_[state];
      for (int byte = 0; byte < 256 && only != CompiledGrammar::kManyBytes; ++byte) {
        if (out_.step(state, static_cast<uint8_t>(byte)) == 0) continue;
        only = only == CompiledGrammar::kNoByte ? static_cast<int16_t>(byte)
                                                : CompiledGrammar::kManyBytes;
      }
    }
  }

  CompiledGrammar& out_;
  const std::vector<PartAutomaton>& parts_;
  CompileBudget& budget_;
  std::vector<uint32_t> first_;  // state 0 of each part
  std::vector<std::unique_ptr<std::vector<Item>>> entries_;
  std::map<std::vector<uint32_t>, uint32_t> lists_;
};

CompiledGrammar::CompiledGrammar(const std::vector<PartAutomaton>& parts,
                                 const ByteClasses& classes, CompileBudget& budget)
    : classes_(classes), n_classes_(classes.n_classes) {
  CompiledGrammarBuilder(*this, parts, budget).run();
}

size_t CompiledGrammar::n_bytes() const {
  return sizeof(*this) + steps_.size() * sizeof(steps_[0]) + final_.size() * sizeof(final_[0]) +
         only_byte_.size() * sizeof(only_byte_[0]) + lists_.size() * sizeof(lists_[0]);
}

std::shared_ptr<const CompiledGrammar> compile(const Grammar& grammar) {
  const GrammarAnalysis analysis = analyse(grammar);
  const std::vector<Nfa> nfas = build_nfas(grammar, analysis);
  const ByteClasses classes = byte_classes(nfas);
  CompileBudget budget(grammar.limits().max_work, grammar.limits().max_table_entries);
  std::vector<PartAutomaton> parts;
  parts.reserve(nfas.size());
  for (const Nfa& nfa : nfas) parts.push_back(make_automaton(nfa, classes, budget));
  return std::make_shared<const CompiledGrammar>(parts, classes, budget);
}

}  // namespace strata::text
