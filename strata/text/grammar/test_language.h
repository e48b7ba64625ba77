#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strata/base/format.h"
#include "strata/text/code_points.h"
#include "strata/text/grammar/grammar.h"
#include "strata/text/grammar/matcher.h"
#include "strata/text/utf8.h"

namespace strata::text::testing {

// The language of a grammar by its plain definition: where a node may end that begins at a byte.
// Slow, and shares nothing with the compiler. The grammar must not be left-recursive.
class SlowLanguage {
 public:
  explicit SlowLanguage(const Grammar& grammar) : grammar_(grammar) {}

  bool contains(std::string_view text) {
    text_ = text;
    known_.clear();
    return ends(grammar_.body(grammar_.root()), 0).count(text.size()) > 0;
  }

 private:
  using Ends = std::set<size_t>;

  Ends ends(GrammarNodeId id, size_t at) {
    const auto found = known_.find({id.value, at});
    if (found != known_.end()) return found->second;
    Ends result = work_out(id, at);
    known_[{id.value, at}] = result;
    return result;
  }

  Ends work_out(GrammarNodeId id, size_t at) {
    const GrammarNode& node = grammar_.node(id);
    switch (node.kind) {
      case GrammarNodeKind::kLiteral:
        if (text_.substr(at).starts_with(grammar_.bytes(node))) return {at + node.count};
        return {};
      case GrammarNodeKind::kClass:
        return character(node, at);
      case GrammarNodeKind::kSequence: {
        Ends now{at};
        for (const GrammarNodeId child : grammar_.children(node)) now = behind(child, now);
        return now;
      }
      case GrammarNodeKind::kAlternatives: {
        Ends all;
        for (const GrammarNodeId child : grammar_.children(node)) all.merge(ends(child, at));
        return all;
      }
      case GrammarNodeKind::kRepeat:
        return repeat(node, at);
      case GrammarNodeKind::kReference:
        return ends(grammar_.body(node.rule), at);
    }
    return {};
  }

  Ends behind(GrammarNodeId child, const Ends& starts) {
    Ends all;
    for (const size_t start : starts) all.merge(ends(child, start));
    return all;
  }

  Ends repeat(const GrammarNode& node, size_t at) {
    Ends now{at};
    Ends all;
    if (node.min == 0) all = now;
    // More rounds than bytes and required ones add nothing.
    const int rounds = node.min + static_cast<int>(text_.size()) + 1;
    for (int i = 1; i <= (node.max == kUnbounded ? rounds : std::min(rounds, node.max)); ++i) {
      now = behind(grammar_.children(node)[0], now);
      if (i >= node.min) all.insert(now.begin(), now.end());
    }
    return all;
  }

  Ends character(const GrammarNode& node, size_t at) {
    if (at >= text_.size()) return {};
    const Utf8Step step = utf8_step(text_.substr(at));
    if (step.status != Utf8Status::kValid) return {};
    const char32_t c = code_point_at(text_, at).value;
    for (const CodePointRange& range : grammar_.ranges(node)) {
      if (c >= range.first && c <= range.last) return {at + step.length};
    }
    return {};
  }

  const Grammar& grammar_;
  std::string_view text_;
  std::map<std::pair<int32_t, size_t>, Ends> known_;
};

// Random texts of a grammar. Every rule must have some.
class Sentences {
 public:
  Sentences(const Grammar& grammar, std::mt19937& random) : grammar_(grammar), random_(random) {
    least_.assign(static_cast<size_t>(grammar.n_nodes()), kNever);
    for (bool moved = true; moved;) {
      moved = false;
      for (int i = 0; i < grammar.n_nodes(); ++i) {
        const int depth = least_depth(grammar.node(GrammarNodeId(i)));
        moved = moved || depth < least_[static_cast<size_t>(i)];
        least_[static_cast<size_t>(i)] = std::min(least_[static_cast<size_t>(i)], depth);
      }
    }
  }

  std::string make() {
    std::string text;
    write(grammar_.body(grammar_.root()), 0, text);
    return text;
  }

 private:
  static constexpr int kNever = 1 << 20;

  int least_of(GrammarNodeId id) const { return least_[static_cast<size_t>(id.value)]; }

  int least_depth(const GrammarNode& node) const {
    switch (node.kind) {
      case GrammarNodeKind::kLiteral:
        return 0;
      case GrammarNodeKind::kClass:
        return node.count > 0 ? 0 : kNever;
      case GrammarNodeKind::kReference:
        return std::min(kNever, 1 + least_of(grammar_.body(node.rule)));
      case GrammarNodeKind::kRepeat:
        return node.min == 0 ? 0 : least_of(grammar_.children(node)[0]);
      case GrammarNodeKind::kSequence: {
        int most = 0;
        for (const GrammarNodeId child : grammar_.children(node)) {
          most = std::max(most, least_of(child));
        }
        return most;
      }
      case GrammarNodeKind::kAlternatives: {
        int least = kNever;
        for (const GrammarNodeId child : grammar_.children(node)) {
          least = std::min(least, least_of(child));
        }
        return least;
      }
    }
    return kNever;
  }

  int below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  void write(GrammarNodeId id, int depth, std::string& text) {
    const GrammarNode& node = grammar_.node(id);
    const bool hurry = depth > 6 || text.size() > 60;
    const auto children = node.kind == GrammarNodeKind::kLiteral ||
                                  node.kind == GrammarNodeKind::kClass ||
                                  node.kind == GrammarNodeKind::kReference
                              ? std::span<const GrammarNodeId>()
                              : grammar_.children(node);
    switch (node.kind) {
      case GrammarNodeKind::kLiteral:
        text += grammar_.bytes(node);
        break;
      case GrammarNodeKind::kClass: {
        const CodePointRange& range =
            grammar_.ranges(node)[static_cast<size_t>(below(static_cast<int>(node.count)))];
        const auto n = static_cast<int>(range.last - range.first) + 1;
        append_utf8(text, range.first + static_cast<char32_t>(below(std::min(n, 4))));
        break;
      }
      case GrammarNodeKind::kReference:
        write(grammar_.body(node.rule), depth + 1, text);
        break;
      case GrammarNodeKind::kSequence:
        for (const GrammarNodeId child : children) write(child, depth, text);
        break;
      case GrammarNodeKind::kAlternatives: {
        std::vector<GrammarNodeId> choices;
        int least = kNever;
        for (const GrammarNodeId child : children) least = std::min(least, least_of(child));
        for (const GrammarNodeId child : children) {
          if (least_of(child) < kNever && (!hurry || least_of(child) == least)) {
            choices.push_back(child);
          }
        }
        write(choices[static_cast<size_t>(below(static_cast<int>(choices.size())))], depth, text);
        break;
      }
      case GrammarNodeKind::kRepeat: {
        int n = node.min;
        if (!hurry && least_of(children[0]) < kNever) {
          n += below(1 + std::min(4, node.max == kUnbounded ? 4 : node.max - node.min));
        }
        for (int i = 0; i < n; ++i) write(children[0], depth, text);
        break;
      }
    }
  }

  const Grammar& grammar_;
  std::mt19937& random_;
  std::vector<int> least_;  // references that the shortest way down passes
};

// A grammar of a few rules over a few characters of one to four bytes.
class RandomGrammar {
 public:
  explicit RandomGrammar(std::mt19937& random) : random_(random) {}

  Grammar make() {
    Grammar grammar;
    const int n_rules = 1 + below(4);
    for (int i = 0; i < n_rules; ++i) grammar.add_rule(i == 0 ? "root" : format("r{}", i), i + 1);
    for (int i = 0; i < n_rules; ++i) grammar.define(RuleId(i), node(grammar, 0));
    return grammar;
  }

  static const std::vector<char32_t>& alphabet() {
    static const std::vector<char32_t> kCharacters{'a', 'b', 'c', '"', 0xE9, 0x4E2D, 0x1F600};
    return kCharacters;
  }

  char32_t character() {
    return alphabet()[static_cast<size_t>(below(static_cast<int>(alphabet().size())))];
  }

  // Characters, sometimes with a byte changed or cut.
  std::string text(int max_characters) {
    std::string out;
    for (int n = below(max_characters + 1); n > 0; --n) append_utf8(out, character());
    if (!out.empty() && below(6) == 0) out[static_cast<size_t>(below(int(out.size())))] ^= 0x41;
    if (!out.empty() && below(6) == 0) out.resize(out.size() - 1);
    return out;
  }

  int below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

 private:
  GrammarNodeId node(Grammar& grammar, int depth) {
    switch (depth > 3 ? below(4) : below(10)) {
      case 0:
      case 1: {
        std::string text;
        for (int n = 1 + below(3); n > 0; --n) append_utf8(text, character());
        return grammar.literal(text);
      }
      case 2:
        return grammar.one_of(characters());
      case 3:
        return grammar.reference(RuleId(below(grammar.n_rules())));
      case 4:
      case 5:
      case 6: {
        std::vector<GrammarNodeId> children;
        for (int n = 1 + below(3); n > 0; --n) children.push_back(node(grammar, depth + 1));
        return grammar.sequence(children);
      }
      case 7:
      case 8: {
        std::vector<GrammarNodeId> children;
        for (int n = 1 + below(3); n > 0; --n) children.push_back(node(grammar, depth + 1));
        return grammar.alternatives(children);
      }
      default: {
        const int min = below(3);
        const int max = below(2) == 0 ? kUnbounded : min + below(3);
        return grammar.repeat(node(grammar, depth + 1), min, max);
      }
    }
  }

  CodePointRanges characters() {
    CodePointRanges ranges;
    for (int n = 1 + below(3); n > 0; --n) {
      const char32_t a = character();
      const char32_t b = below(3) == 0 ? character() : a;
      ranges.push_back({std::min(a, b), std::max(a, b)});
    }
    ranges = normalised(ranges);
    return below(4) == 0 ? complement(ranges) : ranges;
  }

  std::mt19937& random_;
};

// The grammar as GBNF.
inline std::string gbnf_of(const Grammar& grammar) {
  const auto escaped = [](char32_t c) { return format("\\U{:08X}", static_cast<uint32_t>(c)); };
  const std::function<std::string(GrammarNodeId)> write = [&](GrammarNodeId id) -> std::string {
    const GrammarNode& node = grammar.node(id);
    std::string out;
    switch (node.kind) {
      case GrammarNodeKind::kLiteral: {
        const std::string_view bytes = grammar.bytes(node);
        for (size_t at = 0; at < bytes.size(); at += code_point_at(bytes, at).length) {
          out += escaped(code_point_at(bytes, at).value);
        }
        return "\"" + out + "\"";
      }
      case GrammarNodeKind::kClass:
        for (const CodePointRange& range : grammar.ranges(node)) {
          out += escaped(range.first) + "-" + escaped(range.last);
        }
        return "[" + out + "]";
      case GrammarNodeKind::kReference:
        return grammar.rule_name(node.rule);
      case GrammarNodeKind::kSequence:
        for (const GrammarNodeId child : grammar.children(node)) out += write(child) + " ";
        return "(" + out + ")";
      case GrammarNodeKind::kAlternatives:
        for (const GrammarNodeId child : grammar.children(node)) {
          out += (out.empty() ? "" : " | ") + write(child);
        }
        return "(" + out + ")";
      case GrammarNodeKind::kRepeat:
        return write(grammar.children(node)[0]) + (node.max == kUnbounded
                                                       ? format("{{{},}}", node.min)
                                                       : format("{{{},{}}}", node.min, node.max));
    }
    return out;
  };
  std::string text;
  for (int i = 0; i < grammar.n_rules(); ++i) {
    text += grammar.rule_name(RuleId(i)) + " ::= " + write(grammar.body(RuleId(i))) + "\n";
  }
  return text;
}

inline bool matches(Matcher matcher, std::string_view text) {
  return matcher.accept(text) && matcher.may_end();
}

}  // namespace strata::text::testing
