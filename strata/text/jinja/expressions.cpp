#include <utility>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/jinja/builtins.h"
#include "strata/text/jinja/operators.h"
#include "strata/text/jinja/run.h"
#include "strata/text/jinja/value_writer.h"

namespace strata::text {

// The case functions stay out of this one, so that its frame, which is on the stack once a level,
// stays small.
Value TemplateRun::eval(const Expression& node) {
  const Level level(*this);
  line_ = node.line;
  switch (node.kind) {
    case ExpressionKind::kLiteral:
      return static_cast<const LiteralExpression&>(node).value;
    case ExpressionKind::kName:
      return eval_name(static_cast<const NameExpression&>(node));
    case ExpressionKind::kList:
      return eval_list(static_cast<const ListExpression&>(node));
    case ExpressionKind::kMap:
      return eval_map(static_cast<const MapExpression&>(node));
    case ExpressionKind::kChain:
      return eval_chain(static_cast<const ChainExpression&>(node));
    case ExpressionKind::kLogic:
      return eval_logic(static_cast<const LogicExpression&>(node));
    case ExpressionKind::kNot:
      return Value::boolean(!truthy(eval(*static_cast<const NotExpression&>(node).operand)));
    case ExpressionKind::kSign:
      return eval_sign(static_cast<const SignExpression&>(node));
    case ExpressionKind::kCompare:
      return eval_compare(static_cast<const CompareExpression&>(node));
    case ExpressionKind::kConcat:
      return eval_concat(static_cast<const ConcatExpression&>(node));
    case ExpressionKind::kConditional:
      return eval_conditional(static_cast<const ConditionalExpression&>(node));
    case ExpressionKind::kAttribute: {
      const auto& access = static_cast<const AttributeExpression&>(node);
      const Value object = eval(*access.object);
      line_ = node.line;
      return attribute(object, access.name);
    }
    case ExpressionKind::kItem:
      return eval_item(static_cast<const ItemExpression&>(node));
    case ExpressionKind::kSlice:
      return eval_slice(static_cast<const SliceExpression&>(node));
    case ExpressionKind::kCall:
      return eval_call(static_cast<const CallExpression&>(node));
    case ExpressionKind::kFilter:
    case ExpressionKind::kTest:
      return eval_apply(static_cast<const ApplyExpression&>(node));
    case ExpressionKind::kBody:
      return body_;
  }
  STRATA_CHECK(false);
}

Value TemplateRun::eval_name(const NameExpression& node) {
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent()) {
    budget_.step(scope->cost());
    if (const Value* found = scope->find(node.name)) return *found;
  }
  return absent(format("'{}' is undefined", tree_.names[node.name]));
}

Value TemplateRun::eval_list(const ListExpression& node) {
  Value::Items items;
  items.reserve(node.items.size());
  for (const ExpressionPtr& item : node.items) items.push_back(eval(*item));
  line_ = node.line;
  return make_list(std::move(items), budget_, node.tuple ? ListKind::kTuple : ListKind::kList);
}

Value TemplateRun::eval_map(const MapExpression& node) {
  Value::Entries entries;
  entries.reserve(node.entries.size());
  for (const auto& [key, value] : node.entries) {
    Value key_value = eval(*key);
    entries.emplace_back(std::move(key_value), eval(*value));
  }
  line_ = node.line;
  return make_map(std::move(entries), budget_);
}

Value TemplateRun::eval_chain(const ChainExpression& node) {
  Value result = eval(*node.first);
  for (const auto& [op, operand] : node.rest) {
    const Value right = eval(*operand);
    line_ = node.line;
    result = apply(op, result, right, budget_);
  }
  return result;
}

Value TemplateRun::eval_logic(const LogicExpression& node) {
  Value result;
  for (const ExpressionPtr& operand : node.operands) {
    result = eval(*operand);
    if (truthy(result) != node.conjunction) break;
  }
  return result;
}

Value TemplateRun::eval_sign(const SignExpression& node) {
  const Value operand = eval(*node.operand);
  line_ = node.line;
  if (operand.is_undefined()) throw Error(ErrorCode::kInvalidArgument, operand.reason());
  if (!is_numeric(operand)) {
    throw Error(ErrorCode::kInvalidArgument,
                format("a {} has no {}", type_name(operand), node.negative ? "negative" : "sign"));
  }
  if (node.negative) return negate(operand);
  // +true is 1.
  const std::optional<int64_t> integer = to_integer(operand);
  return integer ? Value::integer(*integer) : operand;
}

bool TemplateRun::holds(Comparison comparison, const Value& a, const Value& b) {
  switch (comparison) {
    case Comparison::kEqual:
      return equal(a, b, budget_);
    case Comparison::kNotEqual:
      return !equal(a, b, budget_);
    case Comparison::kLess:
      return compare(a, b, budget_) < 0;
    case Comparison::kLessEqual:
      return compare(a, b, budget_) <= 0;
    case Comparison::kGreater:
      return compare(a, b, budget_) > 0;
    case Comparison::kGreaterEqual:
      return compare(a, b, budget_) >= 0;
    case Comparison::kIn:
      return contains(b, a, budget_);
    case Comparison::kNotIn:
      return !contains(b, a, budget_);
  }
  return false;
}

Value TemplateRun::eval_compare(const CompareExpression& node) {
  Value left = eval(*node.first);
  for (const auto& [comparison, operand] : node.rest) {
    Value right = eval(*operand);
    line_ = node.line;
    if (!holds(comparison, left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value TemplateRun::eval_concat(const ConcatExpression& node) {
  MarkedTextBuilder out(budget_);
  for (const ExpressionPtr& part : node.parts) {
    const Value value = eval(*part);
    line_ = node.line;
    write_text(value, out, budget_);
  }
  return Value::string(out.take());
}

Value TemplateRun::eval_conditional(const ConditionalExpression& node) {
  if (truthy(eval(*node.condition))) return eval(*node.then);
  if (node.otherwise != nullptr) return eval(*node.otherwise);
  return Value::undefined(
      "an inline if without an else gave no value, because its condition is false");
}

Value TemplateRun::eval_item(const ItemExpression& node) {
  const Value object = eval(*node.object);
  const Value key = eval(*node.key);
  line_ = node.line;
  return item(object, key);
}

Value TemplateRun::eval_slice(const SliceExpression& node) {
  const Value object = eval(*node.object);
  SliceBounds bounds;
  if (node.start != nullptr) bounds.start = eval(*node.start);
  if (node.stop != nullptr) bounds.stop = eval(*node.stop);
  if (node.step != nullptr) bounds.step = eval(*node.step);
  line_ = node.line;
  return slice(object, bounds, budget_);
}

void TemplateRun::eval_arguments(const ArgumentExpressions& nodes, CallArguments& out) {
  out.positional.reserve(nodes.positional.size());
  for (const ExpressionPtr& node : nodes.positional) out.positional.push_back(eval(*node));
  for (const auto& [name, node] : nodes.named) out.named.emplace_back(name, eval(*node));
  if (nodes.more_positional != nullptr) {
    const Value more = iterated(eval(*nodes.more_positional), budget_);
    const Value::Items& items = more.as_list().items();
    budget_.make(items.size() * sizeof(Value));
    out.positional.insert(out.positional.end(), items.begin(), items.end());
  }
  if (nodes.more_named != nullptr) {
    const Value more = eval(*nodes.more_named);
    if (!more.is_map()) throw Error(ErrorCode::kInvalidArgument, "** needs a map");
    // Names are compared by the callee one by one.
    budget_.step(more.as_map().size() * 8);
    for (const auto& [key, value] : more.as_map().entries()) {
      if (!key.is_string()) throw Error(ErrorCode::kInvalidArgument, "** needs string keys");
      budget_.make(sizeof(Value) + key.as_text().size());
      out.named.emplace_back(key.as_string(), value);
    }
  }
}

Value TemplateRun::eval_call(const CallExpression& node) {
  CallArguments arguments;
  if (node.callee->kind == ExpressionKind::kAttribute) {
    // object.method(...): no method object in between.
    const auto& access = static_cast<const AttributeExpression&>(*node.callee);
    const Value object = eval(*access.object);
    line_ = access.line;
    if (has_method(object, access.name)) {
      eval_arguments(node.arguments, arguments);
      line_ = node.line;
      return call_method(*this, object, access.name, arguments);
    }
    const Value callee = attribute(object, access.name);
    eval_arguments(node.arguments, arguments);
    line_ = node.line;
    return call(callee, arguments);
  }
  const Value callee = eval(*node.callee);
  eval_arguments(node.arguments, arguments);
  line_ = node.line;
  return call(callee, arguments);
}

Value TemplateRun::eval_apply(const ApplyExpression& node) {
  const Value input = eval(*node.input);
  CallArguments arguments;
  eval_arguments(node.arguments, arguments);
  line_ = node.line;
  if (node.kind == ExpressionKind::kTest) {
    return Value::boolean(test(node.name, input, arguments));
  }
  return filter(node.name, input, arguments);
}

}  // namespace strata::text
