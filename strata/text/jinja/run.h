#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strata/text/chat_template.h"
#include "strata/text/jinja/ast.h"
#include "strata/text/jinja/budget.h"
#include "strata/text/jinja/objects.h"

namespace strata::text {

// One rendering: walks the tree with its variables, text so far and budget. Not for several
// threads; the tree outlives it.
class TemplateRun {
 public:
  TemplateRun(const TemplateTree& tree, const TemplateLimits& limits, const RenderOptions& options);

  // The variables of the caller. They hide functions of the same name.
  void define(const Map& variables);
  MarkedText run();
  // The line that is evaluated, for messages.
  int line() const { return line_; }

  // For built-in filters, tests, functions and methods.
  TemplateBudget& budget() { return budget_; }
  const RenderOptions& options() const { return options_; }
  Value filter(std::string_view name, const Value& input, const CallArguments& arguments);
  bool test(std::string_view name, const Value& input, const CallArguments& arguments);
  Value call(const Value& callee, const CallArguments& arguments);
  // object.name and object[key]; undefined if absent. Errors: kInvalidArgument if the object itself
  // is undefined.
  Value attribute(const Value& object, std::string_view name);
  Value item(const Value& object, const Value& key);
  // A new object of this run.
  template <class Object>
  Object& make() {
    budget_.make(sizeof(Object));
    auto owned = std::make_unique<Object>();
    Object& object = *owned;
    objects_.push_back(std::move(owned));
    return object;
  }

 private:
  enum class Flow : uint8_t { kNormal, kBreak, kContinue };

  // One level of evaluation.
  class Level {
   public:
    explicit Level(TemplateRun& run) : run_(run) {
      if (run_.level_ >= run_.limits_.max_depth) run_.too_deep();
      ++run_.level_;
      run_.budget_.step();
    }
    ~Level() { --run_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    TemplateRun& run_;
  };
  [[noreturn]] void too_deep() const;

  // Expressions.
  Value eval(const Expression& node);
  Value eval_name(const NameExpression& node);
  Value eval_list(const ListExpression& node);
  Value eval_map(const MapExpression& node);
  Value eval_chain(const ChainExpression& node);
  Value eval_logic(const LogicExpression& node);
  Value eval_sign(const SignExpression& node);
  Value eval_compare(const CompareExpression& node);
  Value eval_concat(const ConcatExpression& node);
  Value eval_conditional(const ConditionalExpression& node);
  Value eval_item(const ItemExpression& node);
  Value eval_slice(const SliceExpression& node);
  Value eval_call(const CallExpression& node);
  Value eval_apply(const ApplyExpression& node);
  void eval_arguments(const ArgumentExpressions& nodes, CallArguments& out);
  bool holds(Comparison comparison, const Value& a, const Value& b);

  // Calls.
  Value call_macro(const MacroObject& macro, const CallArguments& arguments);
  void bind(const MacroObject& macro, const CallArguments& arguments,
            const std::shared_ptr<Scope>& scope);
  Value call_loop(const LoopObject& loop, const CallArguments& arguments);
  Value loop_attribute(LoopObject& loop, std::string_view name);

  // Statements.
  Flow exec(const Block& block);
  Flow exec(const Statement& statement);
  Flow exec_if(const IfStatement& node);
  Flow exec_for(const ForStatement& node);
  Flow exec_set_block(const SetBlockStatement& node);
  void exec_call_block(const CallBlockStatement& node);
  Flow exec_filter_block(const FilterBlockStatement& node);
  Flow exec_with(const WithStatement& node);
  Flow run_loop(const ForStatement& node, const Value& sequence, int depth,
                std::shared_ptr<Scope> outside);
  Flow run_else(const ForStatement& node, std::shared_ptr<Scope> outside);
  Value filtered(const ForStatement& node, const Value& items, std::shared_ptr<Scope> outside);
  Flow exec_inner(const Block& block);
  // Runs the block in `scope` and gives what it writes.
  Flow render_into(Value& text, const Block& block, std::shared_ptr<Scope> scope);
  std::shared_ptr<Scope> new_scope(std::shared_ptr<Scope> parent);
  Value absent(std::string reason);
  Value filtered_body(const ExpressionPtr& filter, Value body);
  void assign(const Target& target, const Value& value);
  void emit(const Value& value);
  void check_output() const;

  const TemplateTree& tree_;
  const TemplateLimits& limits_;
  const RenderOptions& options_;
  TemplateBudget budget_;
  int level_ = 0;
  int line_ = 1;
  std::vector<std::unique_ptr<TemplateObject>> objects_;
  std::shared_ptr<Scope> scope_;  // the innermost; blocks and macros share their outer scopes
  MarkedTextBuilder output_;
  MarkedTextBuilder* out_ = &output_;
  Value body_;  // what BodyExpression stands for
};

}  // namespace strata::text
