#include "strata/text/grammar/analysis.h"

#include <algorithm>
#include <string>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::text {
namespace {

// A rule used in several places is copied to each if it is at most this large; a repeated child is
// copied for each time if it is at most kMaxCopiedChild.
constexpr double kMaxCopiedRule = 1000;
constexpr double kMaxCopiedChild = 200;
// Copies inside copies; the compiler recurses as deep.
constexpr int kMaxHeight = 500;

enum class Colour : uint8_t { kWhite, kGrey, kBlack };

class Analyser {
 public:
  explicit Analyser(const Grammar& grammar) : grammar_(grammar), n_(grammar.n_nodes()) {}

  GrammarAnalysis run() {
    STRATA_CHECK(grammar_.root().value >= 0);
    for (int i = 0; i < grammar_.n_rules(); ++i) {
      if (!grammar_.is_defined(RuleId(i))) {
        throw Error(ErrorCode::kInvalidArgument,
                    format("{} is used and not defined", grammar_.describe(RuleId(i))));
      }
    }
    link_parents();
    result_.nullable = least_set(false);
    result_.productive = least_set(true);
    const RuleId root = grammar_.root();
    if (!result_.productive[body(root)]) {
      throw Error(ErrorCode::kInvalidArgument,
                  format("{} of the grammar matches no text that ends", grammar_.describe(root)));
    }
    refuse_left_recursion();
    result_.called_rule.assign(static_cast<size_t>(grammar_.n_rules()), 0);
    result_.called_child.assign(n_, 0);
    choose_parts();
    return std::move(result_);
  }

 private:
  const GrammarNode& node(size_t id) const {
    return grammar_.node(GrammarNodeId(static_cast<int32_t>(id)));
  }
  size_t body(RuleId rule) const { return static_cast<size_t>(grammar_.body(rule).value); }

  // What follows from a node: its parents, and the references to the rule whose body it is.
  void link_parents() {
    first_parent_.assign(n_ + 1, 0);
    n_uses_.assign(static_cast<size_t>(grammar_.n_rules()), 0);
    const auto each_edge = [&](auto&& visit) {
      for (size_t id = 0; id < n_; ++id) {
        const GrammarNode& parent = node(id);
        if (parent.kind == GrammarNodeKind::kReference) visit(body(parent.rule), id);
        if (!has_children(parent)) continue;
        for (const GrammarNodeId child : grammar_.children(parent)) {
          visit(static_cast<size_t>(child.value), id);
        }
      }
    };
    each_edge([&](size_t child, size_t) { ++first_parent_[child + 1]; });
    for (size_t id = 0; id < n_; ++id) first_parent_[id + 1] += first_parent_[id];
    parents_.resize(first_parent_[n_]);
    std::vector<size_t> next(first_parent_.begin(), first_parent_.end() - 1);
    each_edge([&](size_t child, size_t parent) { parents_[next[child]++] = parent; });
    for (size_t id = 0; id < n_; ++id) {
      if (node(id).kind == GrammarNodeKind::kReference) ++n_uses_[node(id).rule.value];
    }
  }

  static bool has_children(const GrammarNode& node) {
    return node.kind == GrammarNodeKind::kSequence || node.kind == GrammarNodeKind::kAlternatives ||
           node.kind == GrammarNodeKind::kRepeat;
  }

  // The least set of nodes with: a sequence is in it when all its children are, alternatives when
  // one is, a repetition when its child is or it may be left out, a reference when the rule is;
  // and characters if `with_characters`.
  std::vector<uint8_t> least_set(bool with_characters) const {
    std::vector<uint8_t> in(n_, 0);
    std::vector<uint32_t> missing(n_, 1);  // children that must still enter
    std::vector<size_t> todo;
    const auto enter = [&](size_t id) {
      if (in[id]) return;
      in[id] = 1;
      todo.push_back(id);
    };
    for (size_t id = 0; id < n_; ++id) {
      const GrammarNode& it = node(id);
      bool starts = false;
      if (it.kind == GrammarNodeKind::kLiteral) starts = with_characters;
      if (it.kind == GrammarNodeKind::kClass) starts = with_characters && it.count > 0;
      if (it.kind == GrammarNodeKind::kRepeat) starts = it.min == 0;
      if (it.kind == GrammarNodeKind::kSequence) {
        missing[id] = it.count;
        starts = it.count == 0;
      }
      if (starts) enter(id);
    }
    while (!todo.empty()) {
      const size_t id = todo.back();
      todo.pop_back();
      for (size_t i = first_parent_[id]; i < first_parent_[id + 1]; ++i) {
        const size_t parent = parents_[i];
        if (missing[parent] > 0 && --missing[parent] == 0) enter(parent);
      }
    }
    return in;
  }

  // The nodes that may begin where `id` begins: a step of left recursion.
  // Gives the i-th of them, or n_.
  size_t left_child(size_t id, size_t i) const {
    const GrammarNode& it = node(id);
    if (it.kind == GrammarNodeKind::kReference) return i == 0 ? body(it.rule) : n_;
    if (!has_children(it) || i >= it.count) return n_;
    const auto children = grammar_.children(it);
    if (it.kind == GrammarNodeKind::kSequence && i > 0 &&
        !result_.nullable[static_cast<size_t>(children[i - 1].value)]) {
      return n_;
    }
    return static_cast<size_t>(children[i].value);
  }

  struct Visit {
    size_t id;
    size_t next = 0;
  };

  void refuse_left_recursion() const {
    std::vector<Colour> colour(n_, Colour::kWhite);
    std::vector<Visit> path;
    for (int rule = 0; rule < grammar_.n_rules(); ++rule) {
      const size_t start = body(RuleId(rule));
      if (colour[start] != Colour::kWhite) continue;
      colour[start] = Colour::kGrey;
      path.push_back({start});
      while (!path.empty()) {
        const size_t child = left_child(path.back().id, path.back().next++);
        if (child == n_) {
          colour[path.back().id] = Colour::kBlack;
          path.pop_back();
        } else if (colour[child] == Colour::kGrey) {
          fail_left_recursive(path, child);
        } else if (colour[child] == Colour::kWhite) {
          colour[child] = Colour::kGrey;
          path.push_back({child});
        }
      }
    }
  }

  [[noreturn]] void fail_left_recursive(const std::vector<Visit>& path, size_t start) const {
    std::vector<RuleId> cycle;
    bool inside = false;
    for (const Visit& visit : path) {
      inside = inside || visit.id == start;
      const GrammarNode& it = node(visit.id);
      if (inside && it.kind == GrammarNodeKind::kReference) cycle.push_back(it.rule);
    }
    STRATA_CHECK(!cycle.empty());
    std::string way = grammar_.rule_name(cycle.back());
    constexpr size_t kShown = 8;
    for (size_t i = 0; i < std::min(cycle.size(), kShown); ++i) {
      way += " -> " + grammar_.rule_name(cycle[i]);
    }
    if (cycle.size() > kShown) way += " -> ...";
    throw Error(ErrorCode::kInvalidArgument,
                format("{} is left-recursive: {}", grammar_.describe(cycle.back()), way));
  }

  // Depth-first from the root. A rule met inside itself is called, which breaks every cycle; on the
  // way back sizes are known and large rules in several places become calls too.
  void choose_parts() {
    size_.assign(n_, 0);
    height_.assign(n_, 0);
    std::vector<Colour> colour(n_, Colour::kWhite);
    std::vector<Visit> path;
    const size_t root = body(grammar_.root());
    colour[root] = Colour::kGrey;
    path.push_back({root});
    while (!path.empty()) {
      const size_t id = path.back().id;
      const GrammarNode& it = node(id);
      const size_t i = path.back().next++;
      size_t child = n_;
      if (it.kind == GrammarNodeKind::kReference && i == 0) child = body(it.rule);
      if (has_children(it) && i < it.count) {
        child = static_cast<size_t>(grammar_.children(it)[i].value);
      }
      if (child == n_) {
        measure(id);
        colour[id] = Colour::kBlack;
        path.pop_back();
      } else if (colour[child] == Colour::kGrey) {
        call_innermost(path, child);
      } else if (colour[child] == Colour::kWhite) {
        colour[child] = Colour::kGrey;
        path.push_back({child});
      }
    }
  }

  // Of the references on the way from `start` back to it. There is one: children are older than
  // their parents.
  void call_innermost(const std::vector<Visit>& path, size_t start) {
    for (size_t i = path.size(); i-- > 0;) {
      const GrammarNode& it = node(path[i].id);
      if (it.kind == GrammarNodeKind::kReference) {
        result_.called_rule[it.rule.value] = 1;
        return;
      }
      STRATA_CHECK(path[i].id != start);
    }
  }

  void measure(size_t id) {
    const GrammarNode& it = node(id);
    double size = 1;
    int height = 1;
    switch (it.kind) {
      case GrammarNodeKind::kLiteral:
        size = it.count;
        break;
      case GrammarNodeKind::kClass:
        size = 1 + 2.0 * it.count;
        break;
      case GrammarNodeKind::kReference:
        measure_reference(it, size, height);
        break;
      default:
        for (const GrammarNodeId child : grammar_.children(it)) {
          size += size_[static_cast<size_t>(child.value)];
          height = std::max(height, 1 + height_[static_cast<size_t>(child.value)]);
        }
        if (it.kind == GrammarNodeKind::kRepeat) size = repeat_size(id, it, size);
        break;
    }
    size_[id] = size;
    height_[id] = height;
  }

  void measure_reference(const GrammarNode& it, double& size, int& height) {
    const size_t target = body(it.rule);
    auto& called = result_.called_rule[it.rule.value];
    if (!called) {
      const bool large = size_[target] > kMaxCopiedRule && n_uses_[it.rule.value] > 1;
      called = large || height_[target] >= kMaxHeight;
    }
    if (called) return;
    size = size_[target] + 1;
    height = height_[target] + 1;
  }

  double repeat_size(size_t id, const GrammarNode& it, double child) {
    const int n_copies = std::max(std::max(it.min, it.max), 1);
    if (n_copies > 1 && child > kMaxCopiedChild) {
      result_.called_child[id] = 1;
      child = 1;
    }
    // More copies than this become blocks that are called.
    return std::min(n_copies, 4096) * child + n_copies / 1024.0;
  }

  const Grammar& grammar_;
  const size_t n_;
  std::vector<size_t> first_parent_;
  std::vector<size_t> parents_;
  std::vector<int> n_uses_;
  std::vector<double> size_;
  std::vector<int> height_;
  GrammarAnalysis result_;
};

}  // namespace

GrammarAnalysis analyse(const Grammar& grammar) { return Analyser(grammar).run(); }

}  // namespace strata::text
