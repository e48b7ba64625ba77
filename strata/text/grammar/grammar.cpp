#include "strata/text/grammar/grammar.h"

#include <algorithm>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/utf8.h"

namespace strata::text {

void Grammar::spend(size_t size) {
  size_ += size;
  if (size_ > limits_.max_size) {
    throw Error(ErrorCode::kUnsupported,
                format("the grammar has more than {} parts", limits_.max_size));
  }
}

GrammarNodeId Grammar::add(GrammarNode node) {
  if (node.depth > limits_.max_depth) {
    throw Error(ErrorCode::kUnsupported,
                format("the grammar nests deeper than {} levels", limits_.max_depth));
  }
  spend(1 + node.count);
  nodes_.push_back(node);
  return GrammarNodeId(static_cast<int32_t>(nodes_.size()) - 1);
}

GrammarNodeId Grammar::add_parent(GrammarNodeKind kind, std::span<const GrammarNodeId> children) {
  GrammarNode node{.kind = kind, .depth = 1};
  for (const GrammarNodeId child : children) {
    STRATA_CHECK(child.value >= 0 && child.value < n_nodes());
    node.depth = std::max<uint16_t>(node.depth, nodes_[child.value].depth + 1);
  }
  node.begin = static_cast<uint32_t>(children_.size());
  node.count = static_cast<uint32_t>(children.size());
  const GrammarNodeId id = add(node);
  children_.insert(children_.end(), children.begin(), children.end());
  return id;
}

GrammarNodeId Grammar::literal(std::string_view utf8) {
  if (utf8.empty()) return nothing();
  if (valid_utf8_prefix(utf8) != utf8.size()) {
    throw Error(ErrorCode::kInvalidArgument, "a literal of the grammar is not UTF-8");
  }
  spend(utf8.size());
  GrammarNode node{.kind = GrammarNodeKind::kLiteral, .depth = 1};
  node.begin = static_cast<uint32_t>(bytes_.size());
  node.count = static_cast<uint32_t>(utf8.size());
  bytes_ += utf8;
  return add(node);
}

GrammarNodeId Grammar::one_of(const CodePointRanges& ranges) {
  const CodePointRanges set = normalised(ranges);
  GrammarNode node{.kind = GrammarNodeKind::kClass, .depth = 1};
  node.begin = static_cast<uint32_t>(ranges_.size());
  node.count = static_cast<uint32_t>(set.size());
  const GrammarNodeId id = add(node);
  ranges_.insert(ranges_.end(), set.begin(), set.end());
  return id;
}

GrammarNodeId Grammar::sequence(std::span<const GrammarNodeId> children) {
  if (children.size() == 1) return children[0];
  return add_parent(GrammarNodeKind::kSequence, children);
}

GrammarNodeId Grammar::sequence(std::initializer_list<GrammarNodeId> children) {
  return sequence(std::span(children.begin(), children.size()));
}

GrammarNodeId Grammar::alternatives(std::span<const GrammarNodeId> children) {
  if (children.size() == 1) return children[0];
  return add_parent(GrammarNodeKind::kAlternatives, children);
}

GrammarNodeId Grammar::alternatives(std::initializer_list<GrammarNodeId> children) {
  return alternatives(std::span(children.begin(), children.size()));
}

GrammarNodeId Grammar::repeat(GrammarNodeId child, int min, int max) {
  if (min < 0 || (max != kUnbounded && max < min)) {
    throw Error(ErrorCode::kInvalidArgument,
                format("a repetition of {} to {} times is none", min, max));
  }
  if (std::max(min, max) > limits_.max_repeat) {
    throw Error(ErrorCode::kUnsupported, format("a repetition of {} times is above the limit of {}",
                                                std::max(min, max), limits_.max_repeat));
  }
  if (max == 0) return nothing();
  if (min == 1 && max == 1) return child;
  const GrammarNodeId id = add_parent(GrammarNodeKind::kRepeat, {&child, 1});
  nodes_[id.value].min = min;
  nodes_[id.value].max = max;
  return id;
}

GrammarNodeId Grammar::reference(RuleId rule) {
  STRATA_CHECK(rule.value >= 0 && rule.value < n_rules());
  GrammarNode node{.kind = GrammarNodeKind::kReference, .depth = 1};
  node.rule = rule;
  return add(node);
}

RuleId Grammar::add_rule(std::string name, int line) {
  if (n_rules() >= limits_.max_rules) {
    throw Error(ErrorCode::kUnsupported,
                format("the grammar has more than {} rules", limits_.max_rules));
  }
  spend(1 + name.size());
  rules_.push_back({.name = std::move(name), .line = line});
  const RuleId id(n_rules() - 1);
  if (root_.value < 0) root_ = id;
  return id;
}

void Grammar::define(RuleId rule, GrammarNodeId body) {
  STRATA_CHECK(rule.value >= 0 && rule.value < n_rules() && !is_defined(rule));
  STRATA_CHECK(body.value >= 0 && body.value < n_nodes());
  rules_[rule.value].body = body;
}

void Grammar::set_root(RuleId rule) {
  STRATA_CHECK(rule.value >= 0 && rule.value < n_rules());
  root_ = rule;
}

void Grammar::set_line(RuleId rule, int line) { rules_[rule.value].line = line; }

std::string Grammar::describe(RuleId rule) const {
  const int line = rule_line(rule);
  return line > 0 ? format("rule {} (line {})", rule_name(rule), line)
                  : format("rule {}", rule_name(rule));
}

}  // namespace strata::text
