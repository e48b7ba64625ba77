#include "strata/text/grammar/nfa.h"

#include <map>
#include <tuple>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::text {
namespace {

// A long repetition is built of blocks of so many times, each a part: {0,100000} costs two blocks
// and 97 calls, not 100000 copies.
constexpr int kBlock = 1024;

class NfaBuilder {
 public:
  NfaBuilder(const Grammar& grammar, const GrammarAnalysis& analysis)
      : grammar_(grammar), analysis_(analysis) {}

  std::vector<Nfa> run() {
    part_of(grammar_.body(grammar_.root()), {1, false});
    for (size_t i = 0; i < parts_.size(); ++i) {
      nfa_ = {};
      const uint32_t start = add_state();
      const auto [id, what] = parts_[i];
      uint32_t at = start;
      for (int k = 0; k < what.n_times; ++k) at = build(id, at, what.is_call);
      nfa_.end = at;
      finished_.push_back(std::move(nfa_));
    }
    return std::move(finished_);
  }

 private:
  // The text of a node n_times; its own text, or a call of the part that is its text.
  struct What {
    int n_times;
    bool is_call;
    auto operator<=>(const What&) const = default;
  };

  uint32_t part_of(GrammarNodeId id, What what) {
    const auto [found, is_new] =
        numbers_.try_emplace({id, what}, static_cast<uint32_t>(parts_.size()));
    if (is_new) parts_.emplace_back(id, what);
    return found->second;
  }

  uint32_t add_state() {
    if (++n_states_ > grammar_.limits().max_states) {
      throw Error(ErrorCode::kUnsupported,
                  format("the grammar needs more than {} states: fewer or smaller repetitions help",
                         grammar_.limits().max_states));
    }
    nfa_.first_edge.push_back(0);
    return static_cast<uint32_t>(nfa_.first_edge.size()) - 1;
  }

  void add_edge(uint32_t from, Nfa::Edge edge) {
    if (nfa_.edges.size() > 4 * grammar_.limits().max_states) {
      throw Error(ErrorCode::kUnsupported, format("the grammar needs more than {} transitions",
                                                  4 * grammar_.limits().max_states));
    }
    edge.next = nfa_.first_edge[from];
    nfa_.edges.push_back(edge);
    nfa_.first_edge[from] = static_cast<uint32_t>(nfa_.edges.size());
  }

  void add_bytes(uint32_t from, ByteBounds range, uint32_t to) {
    add_edge(from, {.to = to, .kind = Nfa::Kind::kBytes, .first = range.first, .last = range.last});
  }

  void add_empty(uint32_t from, uint32_t to) {
    if (from != to) add_edge(from, {.to = to});
  }

  bool nullable(GrammarNodeId id) const {
    return analysis_.nullable[static_cast<size_t>(id.value)];
  }
  bool productive(GrammarNodeId id) const {
    return analysis_.productive[static_cast<size_t>(id.value)];
  }

  // Gives the state behind a call of the part.
  uint32_t call(uint32_t part, uint32_t from, bool may_be_empty) {
    const uint32_t to = add_state();
    add_edge(from, {.to = to, .part = part, .kind = Nfa::Kind::kCall});
    if (may_be_empty) add_empty(from, to);
    return to;
  }

  // Adds the text of a node behind `from` and gives the state behind it. Edges may go out of both
  // later; only a loop, which begins with a state of its own, has edges into where it started.
  uint32_t build(GrammarNodeId id, uint32_t from, bool as_call = false) {
    if (!productive(id)) return add_state();  // nothing leads there
    if (as_call) return call(part_of(id, {1, false}), from, nullable(id));
    const GrammarNode& node = grammar_.node(id);
    switch (node.kind) {
      case GrammarNodeKind::kLiteral:
        for (const char byte : grammar_.bytes(node)) {
          const uint32_t to = add_state();
          const auto value = static_cast<uint8_t>(byte);
          add_bytes(from, {value, value}, to);
          from = to;
        }
        return from;
      case GrammarNodeKind::kClass:
        return build_class(node, from);
      case GrammarNodeKind::kSequence:
        for (const GrammarNodeId child : grammar_.children(node)) from = build(child, from);
        return from;
      case GrammarNodeKind::kAlternatives: {
        const uint32_t end = add_state();
        for (const GrammarNodeId child : grammar_.children(node)) {
          if (productive(child)) add_empty(build(child, from), end);
        }
        return end;
      }
      case GrammarNodeKind::kRepeat:
        return build_repeat(id, node, from);
      case GrammarNodeKind::kReference:
        return build(grammar_.body(node.rule), from,
                     analysis_.called_rule[static_cast<size_t>(node.rule.value)] != 0);
    }
    return from;
  }

  uint32_t build_class(const GrammarNode& node, uint32_t from) {
    const uint32_t end = add_state();
    std::vector<ByteSequence> sequences;
    for (const CodePointRange& range : grammar_.ranges(node)) {
      append_utf8_sequences(range, sequences);
    }
    // Equal tails are one: (first byte, last byte, state behind it) -> state in front of it.
    std::map<std::tuple<uint8_t, uint8_t, uint32_t>, uint32_t> tails;
    for (const ByteSequence& sequence : sequences) {
      uint32_t to = end;
      for (int i = sequence.n_bytes - 1; i > 0; --i) {
        const ByteBounds range = sequence.bytes[i];
        const auto [found, is_new] = tails.try_emplace({range.first, range.last, to}, 0);
        if (is_new) {
          found->second = add_state();
          add_bytes(found->second, range, to);
        }
        to = found->second;
      }
      add_bytes(from, sequence.bytes[0], to);
    }
    return end;
  }

  uint32_t build_repeat(GrammarNodeId id, const GrammarNode& node, uint32_t from) {
    const GrammarNodeId child = grammar_.children(node)[0];
    const bool as_call = analysis_.called_child[static_cast<size_t>(id.value)] != 0;
    if (!productive(child)) return from;  // it is productive itself, so zero times will do
    if (node.max == kUnbounded) {
      from = times(child, as_call, node.min > 0 ? node.min - 1 : 0, from);
      const uint32_t loop = add_state();
      add_empty(from, loop);
      const uint32_t last = build(child, loop, as_call);
      add_empty(last, loop);
      return node.min == 0 ? loop : last;
    }
    from = times(child, as_call, node.min, from);
    return up_to(child, as_call, node.max - node.min, from);
  }

  uint32_t times(GrammarNodeId child, bool as_call, int n, uint32_t from) {
    if (n > 2 * kBlock) {
      const uint32_t block = part_of(child, {kBlock, as_call});
      for (; n >= kBlock; n -= kBlock) from = call(block, from, nullable(child));
    }
    for (; n > 0; --n) from = build(child, from, as_call);
    return from;
  }

  uint32_t up_to(GrammarNodeId child, bool as_call, int n, uint32_t from) {
    if (n == 0) return from;
    const uint32_t end = add_state();
    if (n > 2 * kBlock) {
      // j whole blocks, then fewer than a block, or after all of them what is left.
      const uint32_t block = part_of(child, {kBlock, as_call});
      const uint32_t rest = add_state();
      for (; n >= kBlock; n -= kBlock) {
        add_empty(from, rest);
        from = call(block, from, nullable(child));
      }
      single_times(child, as_call, kBlock - 1, rest, end);
    }
    single_times(child, as_call, n, from, end);
    return end;
  }

  void single_times(GrammarNodeId child, bool as_call, int n, uint32_t from, uint32_t end) {
    for (int i = 0; i < n; ++i) {
      add_empty(from, end);
      from = build(child, from, as_call);
    }
    add_empty(from, end);
  }

  const Grammar& grammar_;
  const GrammarAnalysis& analysis_;
  std::vector<std::pair<GrammarNodeId, What>> parts_;
  std::map<std::pair<GrammarNodeId, What>, uint32_t> numbers_;
  Nfa nfa_;
  std::vector<Nfa> finished_;
  size_t n_states_ = 0;
};

}  // namespace

std::vector<Nfa> build_nfas(const Grammar& grammar, const GrammarAnalysis& analysis) {
  return NfaBuilder(grammar, analysis).run();
}

}  // namespace strata::text
