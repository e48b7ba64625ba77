#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/base/ids.h"
#include "strata/text/grammar/code_point_ranges.h"

namespace strata::text {

// What a grammar may cost. Grammars come from requests, so every size that a few bytes of source
// can make large has a bound; beyond it: kUnsupported, with the number.
struct GrammarLimits {
  size_t max_source_bytes = 1 << 20;     // of a text that is parsed
  size_t max_size = 2'000'000;           // nodes, children, ranges and literal bytes together
  int max_rules = 50'000;                // also those that a parser makes
  int max_depth = 200;                   // nodes inside each other, without references
  int max_repeat = 1'000'000;            // the numbers in {m,n}
  size_t max_states = 1'000'000;         // of the automaton before it is made deterministic
  size_t max_table_entries = 8'000'000;  // of 4 bytes: states times byte classes
  size_t max_work = 60'000'000;          // steps of the compiler; about a second
};

using GrammarNodeId = Id<struct GrammarNodeTag>;
using RuleId = Id<struct RuleTag>;

enum class GrammarNodeKind : uint8_t {
  kLiteral,       // these bytes, whole UTF-8 characters, at least one
  kClass,         // one character out of a set; an empty set matches nothing
  kSequence,      // all children in order; without children: the empty text
  kAlternatives,  // one of the children; without children: nothing
  kRepeat,        // its child, min to max times
  kReference,     // the body of a rule
};

inline constexpr int kUnbounded = -1;

struct GrammarNode {
  GrammarNodeKind kind;
  uint16_t depth;      // 1: a leaf
  uint32_t begin = 0;  // of children, ranges or bytes, in the grammar's lists
  uint32_t count = 0;
  int32_t min = 0;  // kRepeat
  int32_t max = 0;  // kRepeat; kUnbounded
  RuleId rule;      // kReference
};

// A context-free grammar over Unicode characters, built bottom-up: children exist before their
// parents, so only references can form a cycle. Not thread-safe while it is built.
class Grammar {
 public:
  explicit Grammar(const GrammarLimits& limits = {}) : limits_(limits) {}

  // Errors of all these: kUnsupported beyond a limit. A node may be used in several places.
  GrammarNodeId nothing() { return sequence({}); }
  // Errors: kInvalidArgument if `utf8` is not UTF-8.
  GrammarNodeId literal(std::string_view utf8);
  GrammarNodeId one_of(const CodePointRanges& ranges);
  GrammarNodeId sequence(std::span<const GrammarNodeId> children);
  GrammarNodeId sequence(std::initializer_list<GrammarNodeId> children);
  GrammarNodeId alternatives(std::span<const GrammarNodeId> children);
  GrammarNodeId alternatives(std::initializer_list<GrammarNodeId> children);
  // Errors: kInvalidArgument unless 0 <= min <= max or max is kUnbounded.
  GrammarNodeId repeat(GrammarNodeId child, int min, int max);
  GrammarNodeId optional(GrammarNodeId child) { return repeat(child, 0, 1); }
  GrammarNodeId reference(RuleId rule);

  // `line`: where the source defines it, for messages; 0: nowhere. The first rule is the root
  // unless set_root() says otherwise.
  RuleId add_rule(std::string name, int line = 0);
  void define(RuleId rule, GrammarNodeId body);
  void set_root(RuleId rule);
  void set_line(RuleId rule, int line);

  RuleId root() const { return root_; }
  int n_rules() const { return static_cast<int>(rules_.size()); }
  int n_nodes() const { return static_cast<int>(nodes_.size()); }
  const std::string& rule_name(RuleId rule) const { return rules_[rule.value].name; }
  int rule_line(RuleId rule) const { return rules_[rule.value].line; }
  bool is_defined(RuleId rule) const { return rules_[rule.value].body.value >= 0; }
  GrammarNodeId body(RuleId rule) const { return rules_[rule.value].body; }
  // For messages: "rule list (line 3)".
  std::string describe(RuleId rule) const;

  const GrammarNode& node(GrammarNodeId id) const { return nodes_[id.value]; }
  std::span<const GrammarNodeId> children(const GrammarNode& node) const {
    return std::span(children_).subspan(node.begin, node.count);
  }
  std::span<const CodePointRange> ranges(const GrammarNode& node) const {
    return std::span(ranges_).subspan(node.begin, node.count);
  }
  std::string_view bytes(const GrammarNode& node) const {
    return std::string_view(bytes_).substr(node.begin, node.count);
  }
  const GrammarLimits& limits() const { return limits_; }
  // As GrammarLimits::max_size counts.
  size_t size() const { return size_; }

 private:
  struct Rule {
    std::string name;
    int line = 0;
    GrammarNodeId body;
  };

  void spend(size_t size);
  GrammarNodeId add(GrammarNode node);
  GrammarNodeId add_parent(GrammarNodeKind kind, std::span<const GrammarNodeId> children);

  GrammarLimits limits_;
  size_t size_ = 0;
  RuleId root_;
  std::vector<Rule> rules_;
  std::vector<GrammarNode> nodes_;
  std::vector<GrammarNodeId> children_;
  std::vector<CodePointRange> ranges_;
  std::string bytes_;
};

}  // namespace strata::text
