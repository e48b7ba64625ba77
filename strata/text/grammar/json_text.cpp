#include "strata/text/grammar/json_text.h"

#include <string_view>
#include <vector>

#include "strata/base/format.h"

namespace strata::text {
namespace {

// Characters that may stand for themselves inside quotation marks.
const CodePointRanges& plain_characters() {
  static const CodePointRanges kRanges = {
      {0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0xD7FF}, {0xE000, kLastCodePoint}};
  return kRanges;
}

constexpr CodePointRange kDigit{'0', '9'};
constexpr CodePointRange kNotZero{'1', '9'};

GrammarNodeId hex_digits(Grammar& grammar, int n) {
  return grammar.repeat(grammar.one_of({kDigit, {'a', 'f'}, {'A', 'F'}}), n, n);
}

GrammarNodeId short_escape(Grammar& grammar, char32_t c) {
  switch (c) {
    case '\b':
      return grammar.literal("\\b");
    case '\f':
      return grammar.literal("\\f");
    case '\n':
      return grammar.literal("\\n");
    case '\r':
      return grammar.literal("\\r");
    case '\t':
      return grammar.literal("\\t");
    case '"':
      return grammar.literal("\\\"");
    case '\\':
      return grammar.literal("\\\\");
    default:
      return grammar.literal(format("\\u{:04x}", static_cast<uint32_t>(c)));
  }
}

GrammarNodeId unsigned_integer(Grammar& grammar) {
  return grammar.alternatives(
      {grammar.literal("0"), grammar.sequence({grammar.one_of({kNotZero}),
                                               grammar.repeat(grammar.one_of({kDigit}), 0, 17)})});
}

Grammar with_root(bool object) {
  Grammar grammar;
  const RuleId root = grammar.add_rule("root");
  const JsonRules rules = add_json_rules(grammar);
  grammar.define(root, grammar.reference(object ? rules.object : rules.value));
  return grammar;
}

}  // namespace

GrammarNodeId json_string_character(Grammar& grammar) {
  const GrammarNodeId short_one = grammar.one_of({{'"', '"'},
                                                  {'\\', '\\'},
                                                  {'/', '/'},
                                                  {'b', 'b'},
                                                  {'f', 'f'},
                                                  {'n', 'n'},
                                                  {'r', 'r'},
                                                  {'t', 't'}});
  const GrammarNodeId d = grammar.one_of({{'d', 'd'}, {'D', 'D'}});
  const GrammarNodeId not_d =
      grammar.one_of({kDigit, {'a', 'c'}, {'A', 'C'}, {'e', 'f'}, {'E', 'F'}});
  const GrammarNodeId low = grammar.one_of({{'0', '7'}});
  const GrammarNodeId first_half = grammar.one_of({{'8', '9'}, {'a', 'b'}, {'A', 'B'}});
  const GrammarNodeId second_half = grammar.one_of({{'c', 'f'}, {'C', 'F'}});
  const GrammarNodeId two = hex_digits(grammar, 2);
  const GrammarNodeId unit = grammar.alternatives(
      {grammar.sequence({not_d, hex_digits(grammar, 3)}), grammar.sequence({d, low, two}),
       grammar.sequence({d, first_half, two, grammar.literal("\\u"), d, second_half, two})});
  const GrammarNodeId escaped =
      grammar.alternatives({short_one, grammar.sequence({grammar.literal("u"), unit})});
  return grammar.alternatives(
      {grammar.one_of(plain_characters()), grammar.sequence({grammar.literal("\\"), escaped})});
}

GrammarNodeId json_characters(Grammar& grammar, const CodePointRanges& ranges) {
  std::vector<GrammarNodeId> ways;
  const CodePointRanges plain = intersection(ranges, plain_characters());
  if (!plain.empty()) ways.push_back(grammar.one_of(plain));
  for (const CodePointRange& range : ranges) {
    for (char32_t c = range.first; c <= range.last && c <= '\\'; ++c) {
      if (c < 0x20 || c == '"' || c == '\\') ways.push_back(short_escape(grammar, c));
    }
  }
  return grammar.alternatives(ways);
}

GrammarNodeId json_string(Grammar& grammar) {
  const GrammarNodeId quote = grammar.literal("\"");
  return grammar.sequence(
      {quote, grammar.repeat(json_string_character(grammar), 0, kUnbounded), quote});
}

GrammarNodeId json_integer(Grammar& grammar) {
  return grammar.sequence({grammar.optional(grammar.literal("-")), unsigned_integer(grammar)});
}

GrammarNodeId json_number(Grammar& grammar) {
  const GrammarNodeId digit = grammar.one_of({kDigit});
  const GrammarNodeId fraction =
      grammar.sequence({grammar.literal("."), grammar.repeat(digit, 1, 18)});
  const GrammarNodeId exponent = grammar.sequence(
      {grammar.one_of({{'e', 'e'}, {'E', 'E'}}),
       grammar.optional(grammar.one_of({{'+', '+'}, {'-', '-'}})), grammar.repeat(digit, 1, 2)});
  return grammar.sequence(
      {json_integer(grammar), grammar.optional(fraction), grammar.optional(exponent)});
}

GrammarNodeId json_separator(Grammar& grammar, char separator) {
  return grammar.sequence(
      {grammar.literal({&separator, 1}), grammar.optional(grammar.literal(" "))});
}

JsonRules add_json_rules(Grammar& grammar) {
  const JsonRules rules{grammar.add_rule("json-value"), grammar.add_rule("json-object")};
  const GrammarNodeId value = grammar.reference(rules.value);
  const GrammarNodeId comma = json_separator(grammar, ',');
  const auto list = [&](std::string_view open, GrammarNodeId item, std::string_view close) {
    const GrammarNodeId more = grammar.repeat(grammar.sequence({comma, item}), 0, kUnbounded);
    return grammar.sequence({grammar.literal(open),
                             grammar.optional(grammar.sequence({item, more})),
                             grammar.literal(close)});
  };
  const GrammarNodeId member =
      grammar.sequence({json_string(grammar), json_separator(grammar, ':'), value});
  grammar.define(rules.object, list("{", member, "}"));
  grammar.define(
      rules.value,
      grammar.alternatives({grammar.reference(rules.object), list("[", value, "]"),
                            json_string(grammar), json_number(grammar), grammar.literal("true"),
                            grammar.literal("false"), grammar.literal("null")}));
  return rules;
}

Grammar json_object_grammar() { return with_root(true); }

Grammar json_value_grammar() { return with_root(false); }

}  // namespace strata::text
