#include <algorithm>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/jinja/parse_state.h"

namespace strata::text {
namespace {

// How strongly operators bind, weakest first.
enum Level : int { kOr, kAnd, kNotLevel, kCompareLevel, kSum, kConcatLevel, kProduct, kPowerLevel };
constexpr int kNoOperator = -1;

struct OperatorName {
  std::string_view text;
  int level;
  Arithmetic arithmetic;
};
constexpr OperatorName kOperators[] = {
    {"+", kSum, Arithmetic::kAdd},
    {"-", kSum, Arithmetic::kSubtract},
    {"*", kProduct, Arithmetic::kMultiply},
    {"/", kProduct, Arithmetic::kDivide},
    {"//", kProduct, Arithmetic::kFloorDivide},
    {"%", kProduct, Arithmetic::kModulo},
    {"**", kPowerLevel, Arithmetic::kPower},
};

struct ComparisonName {
  std::string_view text;
  Comparison comparison;
};
constexpr ComparisonName kComparisons[] = {
    {"==", Comparison::kEqual},  {"!=", Comparison::kNotEqual},
    {"<", Comparison::kLess},    {"<=", Comparison::kLessEqual},
    {">", Comparison::kGreater}, {">=", Comparison::kGreaterEqual},
};

const OperatorName* find_operator(const Token& token) {
  if (token.kind != TokenKind::kOperator) return nullptr;
  for (const OperatorName& op : kOperators) {
    if (token.text == op.text) return &op;
  }
  return nullptr;
}

const ComparisonName* find_comparison(const Token& token) {
  if (token.kind != TokenKind::kOperator) return nullptr;
  for (const ComparisonName& op : kComparisons) {
    if (token.text == op.text) return &op;
  }
  return nullptr;
}

bool is_reserved(std::string_view name) {
  static constexpr std::string_view kReserved[] = {"and", "or", "not",  "in",
                                                   "is",  "if", "else", "elif"};
  return std::find(std::begin(kReserved), std::end(kReserved), name) != std::end(kReserved);
}

int depth_of(const ExpressionPtr& node) { return node == nullptr ? 0 : node->depth; }

}  // namespace

ExpressionPtr ExpressionParser::expression(bool with_conditional) {
  const ParseState::Level level(state_);
  ExpressionPtr node = operators(kOr);
  while (with_conditional && state_.is_name("if")) {
    auto conditional = std::make_unique<ConditionalExpression>(state_.line());
    state_.next();
    conditional->then = std::move(node);
    conditional->condition = operators(kOr);
    if (state_.skip_name("else")) conditional->otherwise = expression();
    state_.set_depth(*conditional,
                     std::max({conditional->then->depth, conditional->condition->depth,
                               depth_of(conditional->otherwise)}));
    node = std::move(conditional);
  }
  return node;
}

int ExpressionParser::operator_level() const {
  const Token& token = state_.current();
  if (token.kind == TokenKind::kName) {
    if (token.text == "or") return kOr;
    if (token.text == "and") return kAnd;
    if (token.text == "in") return kCompareLevel;
    const Token& after = state_.ahead(1);
    const bool not_in = token.text == "not" && after.kind == TokenKind::kName && after.text == "in";
    return not_in ? kCompareLevel : kNoOperator;
  }
  if (const OperatorName* op = find_operator(token)) return op->level;
  if (find_comparison(token) != nullptr) return kCompareLevel;
  return state_.is_operator("~") ? kConcatLevel : kNoOperator;
}

// Operands joined by operators that bind at least as strongly as `lowest`.
ExpressionPtr ExpressionParser::operators(int lowest) {
  ExpressionPtr node = lowest <= kNotLevel && state_.is_name("not") ? negation() : unary(true);
  for (int level = operator_level(); level >= lowest && level != kNoOperator;
       level = operator_level()) {
    node = collect(level, std::move(node));
  }
  return node;
}

ExpressionPtr ExpressionParser::negation() {
  const ParseState::Level level(state_);
  auto node = std::make_unique<NotExpression>(state_.line());
  state_.next();
  node->operand = operators(kNotLevel);
  state_.set_depth(*node, node->operand->depth);
  return node;
}

// `first` and all operators of one level behind it, as one node.
ExpressionPtr ExpressionParser::collect(int level, ExpressionPtr first) {
  const int line = state_.line();
  int depth = first->depth;
  const auto operand = [&] {
    ExpressionPtr node = operators(level + 1);
    depth = std::max(depth, node->depth);
    return node;
  };
  const auto done = [&](auto node) -> ExpressionPtr {
    state_.set_depth(*node, depth);
    return node;
  };
  if (level == kOr || level == kAnd) {
    auto node = std::make_unique<LogicExpression>(line, level == kAnd);
    node->operands.push_back(std::move(first));
    while (operator_level() == level) {
      state_.next();
      node->operands.push_back(operand());
    }
    return done(std::move(node));
  }
  if (level == kConcatLevel) {
    auto node = std::make_unique<ConcatExpression>(line);
    node->parts.push_back(std::move(first));
    while (state_.skip_operator("~")) node->parts.push_back(operand());
    return done(std::move(node));
  }
  if (level == kCompareLevel) {
    auto node = std::make_unique<CompareExpression>(line);
    node->first = std::move(first);
    while (operator_level() == level) {
      const Token token = state_.next();
      Comparison comparison = Comparison::kIn;
      if (const ComparisonName* found = find_comparison(token)) {
        comparison = found->comparison;
      } else if (token.text == "not") {
        state_.next();
        comparison = Comparison::kNotIn;
      }
      node->rest.emplace_back(comparison, operand());
    }
    return done(std::move(node));
  }
  auto node = std::make_unique<ChainExpression>(line);
  node->first = std::move(first);
  while (operator_level() == level) {
    const Arithmetic op = find_operator(state_.current())->arithmetic;
    state_.next();
    node->rest.emplace_back(op, operand());
  }
  return done(std::move(node));
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  ExpressionPtr node;
  if (state_.is_operator("-") || state_.is_operator("+")) {
    const ParseState::Level level(state_);
    auto sign = std::make_unique<SignExpression>(state_.line(), state_.is_operator("-"));
    state_.next();
    sign->operand = unary(false);
    state_.set_depth(*sign, sign->operand->depth);
    node = std::move(sign);
  } else {
    node = postfix(primary());
  }
  return with_filters ? filters_and_tests(std::move(node)) : std::move(node);
}

ExpressionPtr ExpressionParser::primary() {
  const int line = state_.line();
  switch (state_.current().kind) {
    case TokenKind::kName:
      return name_or_constant();
    case TokenKind::kString: {
      std::string text;
      while (state_.is_kind(TokenKind::kString)) text += state_.next().text;
      return std::make_unique<LiteralExpression>(line, Value::scaffold(std::move(text)));
    }
    case TokenKind::kInteger: {
      const std::string digits = state_.next().text;
      try {
        const int64_t value = parse_integer(digits, 0).value_or(0);
        return std::make_unique<LiteralExpression>(line, Value::integer(value));
      } catch (const Error& e) {
        fail_at(line, e.message());
      }
    }
    case TokenKind::kFloat: {
      const double value = parse_number(state_.next().text).value_or(0);
      return std::make_unique<LiteralExpression>(line, Value::number(value));
    }
    default:
      break;
  }
  if (state_.skip_operator("(")) {
    ExpressionPtr node = tuple(true, true);
    state_.expect_operator(")");
    return node;
  }
  if (state_.is_operator("[")) return list();
  if (state_.is_operator("{")) return map();
  state_.unexpected();
}

ExpressionPtr ExpressionParser::name_or_constant() {
  const int line = state_.line();
  if (is_reserved(state_.current().text)) state_.unexpected();
  const std::string name = state_.next().text;
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    return std::make_unique<LiteralExpression>(line,
                                               Value::boolean(name[0] == 't' || name[0] == 'T'));
  }
  if (name == "none" || name == "None") return std::make_unique<LiteralExpression>(line, Value());
  const NameId id = state_.name_id(name);
  for (Signature* macro : state_.macros) {
    macro->uses_caller |= id == kNameCaller;
    macro->uses_varargs |= id == kNameVarargs;
    macro->uses_kwargs |= id == kNameKwargs;
  }
  return std::make_unique<NameExpression>(line, id);
}

bool ExpressionParser::at_tuple_end(std::string_view end_name) const {
  return state_.is_kind(TokenKind::kOutputEnd) || state_.is_kind(TokenKind::kBlockEnd) ||
         state_.is_operator(")") || (!end_name.empty() && state_.is_name(end_name));
}

ExpressionPtr ExpressionParser::tuple(bool with_conditional, bool in_parentheses,
                                      std::string_view end_name) {
  auto node = std::make_unique<ListExpression>(state_.line(), true);
  int depth = 0;
  bool comma = false;
  while (!at_tuple_end(end_name)) {
    node->items.push_back(expression(with_conditional));
    depth = std::max(depth, node->items.back()->depth);
    if (!state_.skip_operator(",")) break;
    comma = true;
  }
  if (!comma) {
    if (!node->items.empty()) return std::move(node->items.front());
    if (!in_parentheses) state_.unexpected("an expression");
  }
  state_.set_depth(*node, depth);
  return node;
}

ExpressionPtr ExpressionParser::list() {
  auto node = std::make_unique<ListExpression>(state_.line(), false);
  int depth = 0;
  state_.expect_operator("[");
  while (!state_.skip_operator("]")) {
    if (!node->items.empty()) state_.expect_operator(",");
    if (state_.skip_operator("]")) break;
    node->items.push_back(expression());
    depth = std::max(depth, node->items.back()->depth);
  }
  state_.set_depth(*node, depth);
  return node;
}

ExpressionPtr ExpressionParser::map() {
  auto node = std::make_unique<MapExpression>(state_.line());
  int depth = 0;
  state_.expect_operator("{");
  while (!state_.skip_operator("}")) {
    if (!node->entries.empty()) state_.expect_operator(",");
    if (state_.skip_operator("}")) break;
    ExpressionPtr key = expression();
    state_.expect_operator(":");
    ExpressionPtr value = expression();
    depth = std::max({depth, key->depth, value->depth});
    node->entries.emplace_back(std::move(key), std::move(value));
  }
  state_.set_depth(*node, depth);
  return node;
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr node) {
  for (;;) {
    const int line = state_.line();
    if (state_.is_operator("(")) {
      node = call(std::move(node));
    } else if (state_.is_operator("[")) {
      node = subscript(std::move(node));
    } else if (state_.skip_operator(".")) {
      const int depth = node->depth;
      if (state_.is_kind(TokenKind::kInteger)) {
        auto item = std::make_unique<ItemExpression>(line);
        item->object = std::move(node);
        item->key = primary();
        node = std::move(item);
      } else {
        auto attribute = std::make_unique<AttributeExpression>(line);
        attribute->object = std::move(node);
        attribute->name = state_.expect_identifier();
        node = std::move(attribute);
      }
      state_.set_depth(*node, depth);
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr node) {
  const int line = state_.line();
  state_.expect_operator("[");
  int depth = node->depth;
  const auto part = [&]() -> ExpressionPtr {
    if (state_.is_operator(":") || state_.is_operator("]")) return nullptr;
    ExpressionPtr value = expression();
    depth = std::max(depth, value->depth);
    return value;
  };
  ExpressionPtr first = part();
  if (!state_.is_operator(":")) {
    if (first == nullptr) state_.unexpected("an index");
    if (state_.is_operator(",")) {
      throw Error(ErrorCode::kUnsupported, format("line {}: an index of several parts", line));
    }
    state_.expect_operator("]");
    auto item = std::make_unique<ItemExpression>(line);
    item->object = std::move(node);
    item->key = std::move(first);
    state_.set_depth(*item, depth);
    return item;
  }
  state_.next();
  auto slice = std::make_unique<SliceExpression>(line);
  slice->object = std::move(node);
  slice->start = std::move(first);
  slice->stop = part();
  if (state_.skip_operator(":")) slice->step = part();
  state_.expect_operator("]");
  state_.set_depth(*slice, depth);
  return slice;
}

ExpressionPtr ExpressionParser::filters_and_tests(ExpressionPtr node) {
  for (;;) {
    if (state_.is_operator("|")) {
      node = filter(std::move(node));
    } else if (state_.is_name("is")) {
      node = test(std::move(node));
    } else if (state_.is_operator("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

// At the "|"; a null node stands for the body of a block.
ExpressionPtr ExpressionParser::filter(ExpressionPtr node) {
  auto filter = std::make_unique<ApplyExpression>(ExpressionKind::kFilter, state_.line());
  state_.expect_operator("|");
  int depth = node->depth;
  filter->input = std::move(node);
  filter->name = state_.expect_identifier();
  while (state_.skip_operator(".")) filter->name += "." + state_.expect_identifier();
  if (state_.is_operator("(")) depth = std::max(depth, arguments(filter->arguments));
  state_.set_depth(*filter, depth);
  return filter;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr node) {
  const int line = state_.line();
  state_.expect_name("is");
  const bool negated = state_.skip_name("not");
  auto test = std::make_unique<ApplyExpression>(ExpressionKind::kTest, line);
  int depth = node->depth;
  test->input = std::move(node);
  test->name = state_.expect_identifier();
  while (state_.skip_operator(".")) test->name += "." + state_.expect_identifier();
  const Token& token = state_.current();
  const bool bare_argument = token.kind == TokenKind::kString ||
                             token.kind == TokenKind::kInteger || token.kind == TokenKind::kFloat ||
                             state_.is_operator("[") || state_.is_operator("{") ||
                             (token.kind == TokenKind::kName && !is_reserved(token.text));
  if (state_.is_operator("(")) {
    depth = std::max(depth, arguments(test->arguments));
  } else if (state_.is_name("is")) {
    fail_at(line, "tests cannot be chained with 'is'");
  } else if (bare_argument) {
    test->arguments.positional.push_back(postfix(primary()));
    depth = std::max(depth, test->arguments.positional.back()->depth);
  }
  state_.set_depth(*test, depth);
  if (!negated) return test;
  auto inverse = std::make_unique<NotExpression>(line);
  inverse->operand = std::move(test);
  state_.set_depth(*inverse, inverse->operand->depth);
  return inverse;
}

ExpressionPtr ExpressionParser::call(ExpressionPtr node) {
  auto call = std::make_unique<CallExpression>(state_.line());
  const int depth = node->depth;
  call->callee = std::move(node);
  state_.set_depth(*call, std::max(depth, arguments(call->arguments)));
  return call;
}

// Reads "(...)"; gives the depth of the deepest argument.
int ExpressionParser::arguments(ArgumentExpressions& out) {
  int depth = 0;
  const auto value = [&] {
    ExpressionPtr node = expression();
    depth = std::max(depth, node->depth);
    return node;
  };
  state_.expect_operator("(");
  bool first = true;
  while (!state_.skip_operator(")")) {
    if (!first) state_.expect_operator(",");
    first = false;
    if (state_.skip_operator(")")) break;
    const int line = state_.line();
    const bool named = state_.is_kind(TokenKind::kName) &&
                       state_.ahead(1).kind == TokenKind::kOperator && state_.ahead(1).text == "=";
    bool in_order = out.more_named == nullptr;
    if (state_.skip_operator("**")) {
      out.more_named = value();
    } else if (state_.skip_operator("*")) {
      in_order = in_order && out.more_positional == nullptr;
      out.more_positional = value();
    } else if (named) {
      std::string name = state_.expect_identifier();
      state_.next();
      out.named.emplace_back(std::move(name), value());
    } else {
      in_order = in_order && out.named.empty() && out.more_positional == nullptr;
      out.positional.push_back(value());
    }
    if (!in_order) fail_at(line, "arguments in a wrong order");
  }
  return depth;
}

ExpressionPtr ExpressionParser::filters_of_body() {
  // The first filter has no "|" in front of it.
  auto first = std::make_unique<ApplyExpression>(ExpressionKind::kFilter, state_.line());
  first->input = std::make_unique<BodyExpression>(state_.line());
  first->name = state_.expect_identifier();
  while (state_.skip_operator(".")) first->name += "." + state_.expect_identifier();
  int depth = 1;
  if (state_.is_operator("(")) depth = std::max(depth, arguments(first->arguments));
  state_.set_depth(*first, depth);
  ExpressionPtr node = std::move(first);
  while (state_.is_operator("|")) node = filter(std::move(node));
  return node;
}

ExpressionPtr ExpressionParser::piped_filters_of_body() {
  if (!state_.is_operator("|")) return nullptr;
  ExpressionPtr node = std::make_unique<BodyExpression>(state_.line());
  while (state_.is_operator("|")) node = filter(std::move(node));
  return node;
}

}  // namespace strata::text
