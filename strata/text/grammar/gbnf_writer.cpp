#include "strata/text/grammar/gbnf_writer.h"

#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/code_points.h"

namespace strata::text {
namespace {

// Deeper nodes become rules of their own: a reader has a limit for parentheses.
constexpr int kMaxDepth = 6;

// As it stands in a literal or a class: seldom longer than in the source that it came from.
std::string character(char32_t c) {
  constexpr std::string_view kEscaped = "\"\\[]-^";
  if (c < ' ' || c == 0x7F) {
    if (c == '\n') return "\\n";
    if (c == '\r') return "\\r";
    if (c == '\t') return "\\t";
    return format("\\x{:02X}", static_cast<uint32_t>(c));
  }
  std::string text;
  if (c < 0x80 && kEscaped.find(static_cast<char>(c)) != std::string_view::npos) text = '\\';
  append_utf8(text, c);
  return text;
}

class GbnfWriter {
 public:
  GbnfWriter(const Grammar& grammar, std::string_view prefix)
      : grammar_(grammar), prefix_(prefix), n_uses_(static_cast<size_t>(grammar.n_nodes())) {
    for (int i = 0; i < grammar.n_nodes(); ++i) {
      const GrammarNode& node = grammar.node(GrammarNodeId(i));
      if (!has_children(node)) continue;
      for (const GrammarNodeId child : grammar.children(node))
        ++n_uses_[static_cast<size_t>(child.value)];
    }
  }

  std::string run(std::span<const RuleId> more) {
    std::string text;
    rule_name(grammar_.root());
    for (const RuleId rule : more) rule_name(rule);
    while (!todo_.empty()) {
      const auto [name, id] = todo_.front();
      todo_.pop_front();
      text += name + " ::= ";
      write(id, 0, text);
      text += '\n';
    }
    check_size(text);
    return text;
  }

 private:
  static bool has_children(const GrammarNode& node) {
    return node.kind == GrammarNodeKind::kSequence || node.kind == GrammarNodeKind::kAlternatives ||
           node.kind == GrammarNodeKind::kRepeat;
  }

  std::string named(std::string name, GrammarNodeId body) {
    if (known_.insert(name).second) todo_.emplace_back(name, body);
    return name;
  }
  std::string rule_name(RuleId rule) {
    return named(gbnf_rule(grammar_, prefix_, rule), grammar_.body(rule));
  }

  void check_size(const std::string& text) const {
    const size_t limit = grammar_.limits().max_source_bytes;
    if (text.size() <= limit) return;
    throw Error(ErrorCode::kUnsupported,
                format("the grammar is too large: it takes more than {} bytes to write", limit));
  }

  // As one piece, that a repetition may follow.
  void piece(GrammarNodeId id, int depth, std::string& out) {
    const GrammarNode& node = grammar_.node(id);
    if (has_children(node)) {
      if (depth >= kMaxDepth || n_uses_[static_cast<size_t>(id.value)] > 1) {
        out += named(format("{}n{}", prefix_, id.value), id);
        return;
      }
      out += '(';
      write(id, depth, out);
      out += ')';
      return;
    }
    write(id, depth, out);
  }

  void write(GrammarNodeId id, int depth, std::string& out) {
    check_size(out);
    const GrammarNode& node = grammar_.node(id);
    switch (node.kind) {
      case GrammarNodeKind::kLiteral:
        out += gbnf_literal(grammar_.bytes(node));
        return;
      case GrammarNodeKind::kClass:
        out += '[';
        for (const CodePointRange& range : grammar_.ranges(node)) {
          check_size(out);
          out += character(range.first);
          if (range.last != range.first) out += '-' + character(range.last);
        }
        out += ']';
        return;
      case GrammarNodeKind::kReference:
        out += rule_name(node.rule);
        return;
      case GrammarNodeKind::kSequence:
      case GrammarNodeKind::kAlternatives: {
        const bool choice = node.kind == GrammarNodeKind::kAlternatives;
        // A set without characters is what nothing matches.
        if (node.count == 0) out += choice ? "[]" : "()";
        bool first = true;
        for (const GrammarNodeId child : grammar_.children(node)) {
          if (!std::exchange(first, false)) out += choice ? " | " : " ";
          piece(child, depth + 1, out);
        }
        return;
      }
      case GrammarNodeKind::kRepeat:
        piece(grammar_.children(node)[0], depth + 1, out);
        out += node.max == kUnbounded ? format("{{{},}}", node.min)
                                      : format("{{{},{}}}", node.min, node.max);
        return;
    }
  }

  const Grammar& grammar_;
  const std::string prefix_;
  std::vector<int> n_uses_;  // as a child
  std::set<std::string> known_;
  std::deque<std::pair<std::string, GrammarNodeId>> todo_;
};

}  // namespace

std::string to_gbnf(const Grammar& grammar, std::string_view prefix, std::span<const RuleId> more) {
  return GbnfWriter(grammar, prefix).run(more);
}

std::string gbnf_rule(const Grammar& grammar, std::string_view prefix, RuleId rule) {
  return std::string(prefix) +
         (rule == grammar.root() ? std::string("root") : format("r{}", rule.value));
}

std::string gbnf_literal(std::string_view utf8) {
  std::string text = "\"";
  for (size_t at = 0; at < utf8.size();) {
    const CodePoint c = code_point_at(utf8, at);
    text += character(c.value);
    at += c.length;
  }
  return text + '"';
}

}  // namespace strata::text
