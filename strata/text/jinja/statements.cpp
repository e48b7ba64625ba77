#include <utility>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/jinja/operators.h"
#include "strata/text/jinja/run.h"
#include "strata/text/jinja/value_writer.h"

namespace strata::text {

TemplateRun::Flow TemplateRun::exec(const Block& block) {
  for (const auto& statement : block) {
    const Flow flow = exec(*statement);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

TemplateRun::Flow TemplateRun::exec(const Statement& statement) {
  const Level level(*this);
  line_ = statement.line;
  switch (statement.kind) {
    case StatementKind::kText:
      out_->add(static_cast<const TextStatement&>(statement).text);
      check_output();
      return Flow::kNormal;
    case StatementKind::kOutput:
      emit(eval(*static_cast<const OutputStatement&>(statement).value));
      return Flow::kNormal;
    case StatementKind::kIf:
      return exec_if(static_cast<const IfStatement&>(statement));
    case StatementKind::kFor:
      return exec_for(static_cast<const ForStatement&>(statement));
    case StatementKind::kSet: {
      const auto& node = static_cast<const SetStatement&>(statement);
      assign(node.target, eval(*node.value));
      break;
    }
    case StatementKind::kSetBlock:
      return exec_set_block(static_cast<const SetBlockStatement&>(statement));
    case StatementKind::kMacro: {
      const auto& node = static_cast<const MacroStatement&>(statement);
      auto& macro = make<MacroObject>();
      macro.signature = &node.signature;
      macro.closure = scope_;
      scope_->set(node.name, Value::object(&macro));
      break;
    }
    case StatementKind::kCallBlock: {
      const auto& node = static_cast<const CallBlockStatement&>(statement);
      if (node.call == nullptr) return exec_inner(node.signature.body);
      exec_call_block(node);
      break;
    }
    case StatementKind::kFilterBlock:
      return exec_filter_block(static_cast<const FilterBlockStatement&>(statement));
    case StatementKind::kWith:
      return exec_with(static_cast<const WithStatement&>(statement));
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNormal;
}

void TemplateRun::emit(const Value& value) {
  write_text(value, *out_, budget_);
  check_output();
}

void TemplateRun::check_output() const {
  if (output_.size() > limits_.max_output_bytes) {
    throw Error(ErrorCode::kInvalidArgument,
                format("the template writes more than {} bytes", limits_.max_output_bytes));
  }
}

TemplateRun::Flow TemplateRun::exec_if(const IfStatement& node) {
  for (const auto& [condition, then] : node.branches) {
    if (truthy(eval(*condition))) return exec(then);
  }
  return exec(node.otherwise);
}

TemplateRun::Flow TemplateRun::exec_for(const ForStatement& node) {
  return run_loop(node, eval(*node.sequence), 0, scope_);
}

Value TemplateRun::filtered(const ForStatement& node, const Value& items,
                            std::shared_ptr<Scope> outside) {
  Value::Items kept;
  const std::shared_ptr<Scope> before = scope_;
  const std::shared_ptr<Scope> inside = new_scope(outside);  // nothing here can keep it
  scope_ = inside;
  for (const Value& candidate : items.as_list().items()) {
    inside->clear();
    assign(node.target, candidate);
    if (truthy(eval(*node.filter))) kept.push_back(candidate);
  }
  scope_ = before;
  return make_list(std::move(kept), budget_);
}

// A loop control there belongs to the loop around this one.
TemplateRun::Flow TemplateRun::run_else(const ForStatement& node, std::shared_ptr<Scope> outside) {
  const std::shared_ptr<Scope> before = std::exchange(scope_, std::move(outside));
  const Flow flow = exec_inner(node.otherwise);
  scope_ = before;
  return flow;
}

TemplateRun::Flow TemplateRun::run_loop(const ForStatement& node, const Value& sequence, int depth,
                                        std::shared_ptr<Scope> outside) {
  line_ = node.line;
  Value items = iterated(sequence, budget_);
  if (node.filter != nullptr) items = filtered(node, items, outside);
  const std::shared_ptr<Scope> before = scope_;
  if (items.as_list().items().empty()) return run_else(node, outside);
  auto& loop = make<LoopObject>();
  loop.statement = &node;
  loop.outside = outside;
  loop.items = items;
  loop.depth = depth;
  std::shared_ptr<Scope> inside;
  bool completed = false;
  for (size_t i = 0; i < items.as_list().items().size(); ++i) {
    budget_.step();
    line_ = node.line;
    loop.index = i;
    // A scope is made anew for every round, unless no macro has kept the last one.
    if (inside != nullptr && inside.use_count() == 2) {
      inside->clear();
    } else {
      inside = new_scope(outside);
    }
    scope_ = inside;
    inside->set(kNameLoop, Value::object(&loop));
    assign(node.target, items.as_list().items()[i]);
    const Flow flow = exec(node.body);
    completed = completed || flow == Flow::kNormal;
    if (flow == Flow::kBreak) break;
  }
  scope_ = before;
  // As in Jinja2: rounds that a loop control cut short do not count.
  return completed || node.otherwise.empty() ? Flow::kNormal : run_else(node, outside);
}

TemplateRun::Flow TemplateRun::exec_inner(const Block& block) {
  const std::shared_ptr<Scope> before = scope_;
  scope_ = new_scope(before);
  const Flow flow = exec(block);
  scope_ = before;
  return flow;
}

TemplateRun::Flow TemplateRun::render_into(Value& text, const Block& block,
                                           std::shared_ptr<Scope> scope) {
  MarkedTextBuilder inner(budget_);
  MarkedTextBuilder* const before_out = std::exchange(out_, &inner);
  const std::shared_ptr<Scope> before = std::exchange(scope_, std::move(scope));
  const Flow flow = exec(block);
  scope_ = before;
  out_ = before_out;
  text = Value::string(inner.take());
  return flow;
}

Value TemplateRun::filtered_body(const ExpressionPtr& filter, Value body) {
  if (filter == nullptr) return body;
  Value before = std::exchange(body_, std::move(body));
  Value result = eval(*filter);
  body_ = std::move(before);
  return result;
}

// A loop control inside ends the block before its text is used, as in Jinja2.
TemplateRun::Flow TemplateRun::exec_set_block(const SetBlockStatement& node) {
  Value body;
  const Flow flow = render_into(body, node.body, new_scope(scope_));
  if (flow == Flow::kNormal) assign(node.target, filtered_body(node.filter, std::move(body)));
  return flow;
}

TemplateRun::Flow TemplateRun::exec_filter_block(const FilterBlockStatement& node) {
  Value body;
  const Flow flow = render_into(body, node.body, new_scope(scope_));
  if (flow == Flow::kNormal) emit(filtered_body(node.filter, std::move(body)));
  return flow;
}

void TemplateRun::exec_call_block(const CallBlockStatement& node) {
  auto& caller = make<MacroObject>();
  caller.signature = &node.signature;
  caller.closure = scope_;
  const Value callee = eval(*node.call->callee);
  CallArguments arguments;
  eval_arguments(node.call->arguments, arguments);
  arguments.named.emplace_back("caller", Value::object(&caller));
  line_ = node.line;
  emit(call(callee, arguments));
}

TemplateRun::Flow TemplateRun::exec_with(const WithStatement& node) {
  std::vector<Value> values;
  for (const auto& entry : node.values) values.push_back(eval(*entry.second));
  const std::shared_ptr<Scope> before = scope_;
  scope_ = new_scope(before);
  for (size_t i = 0; i < values.size(); ++i) assign(node.values[i].first, values[i]);
  const Flow flow = exec(node.body);
  scope_ = before;
  return flow;
}

void TemplateRun::assign(const Target& target, const Value& value) {
  line_ = target.line;
  if (target.tuple) {
    const Value parts = iterated(value, budget_);
    const Value::Items& items = parts.as_list().items();
    if (items.size() != target.parts.size()) {
      throw Error(ErrorCode::kInvalidArgument,
                  format("{} values for {} names", items.size(), target.parts.size()));
    }
    for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
    return;
  }
  if (target.attribute.empty()) {
    budget_.step(scope_->cost());
    scope_->set(target.name, value);
    return;
  }
  const NameExpression name(target.line, target.name);
  const Value object = eval_name(name);
  if (!object.is(Value::Kind::kObject) ||
      object.as_object()->kind() != TemplateObject::Kind::kNamespace) {
    throw Error(
        ErrorCode::kInvalidArgument,
        format("'{}' is not a namespace: its attributes cannot be set", tree_.names[target.name]));
  }
  static_cast<NamespaceObject*>(object.as_object())->set(target.attribute, value);
}

}  // namespace strata::text
