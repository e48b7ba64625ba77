#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "strata/text/jinja/numbers.h"
#include "strata/text/value.h"

namespace strata::text {

// A parsed template. Nodes are told apart by `kind`; the parser bounds their depth, so walking and
// destroying a tree need a bounded stack.

// A variable's place in Program::names.
using NameId = uint32_t;

enum class ExpressionKind : uint8_t {
  kLiteral,
  kName,
  kList,  // list or tuple
  kMap,
  kChain,  // a + b - c, read from the left
  kLogic,  // and, or
  kNot,
  kSign,
  kCompare,
  kConcat,
  kConditional,
  kAttribute,
  kItem,
  kSlice,
  kCall,
  kFilter,
  kTest,
  kBody,  // what a filter block or a set block has rendered
};

struct Expression {
  Expression(ExpressionKind k, int at) : kind(k), line(at) {}
  virtual ~Expression() = default;
  const ExpressionKind kind;
  const int line;
  int depth = 1;  // nodes on the longest way down, itself included
};
using ExpressionPtr = std::unique_ptr<Expression>;

struct LiteralExpression : Expression {
  LiteralExpression(int at, Value v)
      : Expression(ExpressionKind::kLiteral, at), value(std::move(v)) {}
  Value value;
};

struct NameExpression : Expression {
  NameExpression(int at, NameId id) : Expression(ExpressionKind::kName, at), name(id) {}
  NameId name;
};

struct ListExpression : Expression {
  ListExpression(int at, bool is_tuple) : Expression(ExpressionKind::kList, at), tuple(is_tuple) {}
  bool tuple;
  std::vector<ExpressionPtr> items;
};

struct MapExpression : Expression {
  explicit MapExpression(int at) : Expression(ExpressionKind::kMap, at) {}
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};

// Flat, so that a long sum is not a deep tree.
struct ChainExpression : Expression {
  explicit ChainExpression(int at) : Expression(ExpressionKind::kChain, at) {}
  ExpressionPtr first;
  std::vector<std::pair<Arithmetic, ExpressionPtr>> rest;
};

struct LogicExpression : Expression {
  LogicExpression(int at, bool all) : Expression(ExpressionKind::kLogic, at), conjunction(all) {}
  bool conjunction;
  std::vector<ExpressionPtr> operands;
};

struct NotExpression : Expression {
  explicit NotExpression(int at) : Expression(ExpressionKind::kNot, at) {}
  ExpressionPtr operand;
};

struct SignExpression : Expression {
  SignExpression(int at, bool minus) : Expression(ExpressionKind::kSign, at), negative(minus) {}
  bool negative;
  ExpressionPtr operand;
};

enum class Comparison : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn
};

struct CompareExpression : Expression {
  explicit CompareExpression(int at) : Expression(ExpressionKind::kCompare, at) {}
  ExpressionPtr first;
  std::vector<std::pair<Comparison, ExpressionPtr>> rest;
};

struct ConcatExpression : Expression {
  explicit ConcatExpression(int at) : Expression(ExpressionKind::kConcat, at) {}
  std::vector<ExpressionPtr> parts;
};

struct ConditionalExpression : Expression {
  explicit ConditionalExpression(int at) : Expression(ExpressionKind::kConditional, at) {}
  ExpressionPtr condition;
  ExpressionPtr then;
  ExpressionPtr otherwise;  // may be null
};

struct AttributeExpression : Expression {
  explicit AttributeExpression(int at) : Expression(ExpressionKind::kAttribute, at) {}
  ExpressionPtr object;
  std::string name;
};

struct ItemExpression : Expression {
  explicit ItemExpression(int at) : Expression(ExpressionKind::kItem, at) {}
  ExpressionPtr object;
  ExpressionPtr key;
};

struct SliceExpression : Expression {
  explicit SliceExpression(int at) : Expression(ExpressionKind::kSlice, at) {}
  ExpressionPtr object;
  ExpressionPtr start;  // each may be null
  ExpressionPtr stop;
  ExpressionPtr step;
};

struct ArgumentExpressions {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr more_positional;  // *args, may be null
  ExpressionPtr more_named;       // **kwargs, may be null
};

struct CallExpression : Expression {
  explicit CallExpression(int at) : Expression(ExpressionKind::kCall, at) {}
  ExpressionPtr callee;
  ArgumentExpressions arguments;
};

// A filter or a test. Tests are never applied to a null input.
struct ApplyExpression : Expression {
  ApplyExpression(ExpressionKind k, int at) : Expression(k, at) {}
  ExpressionPtr input;
  std::string name;
  ArgumentExpressions arguments;
};

struct BodyExpression : Expression {
  explicit BodyExpression(int at) : Expression(ExpressionKind::kBody, at) {}
};

enum class StatementKind : uint8_t {
  kText,
  kOutput,
  kIf,
  kFor,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kWith,
  kBreak,
  kContinue,
};

struct Statement {
  Statement(StatementKind k, int at) : kind(k), line(at) {}
  virtual ~Statement() = default;
  const StatementKind kind;
  const int line;
};
using Block = std::vector<std::unique_ptr<Statement>>;

struct TextStatement : Statement {
  TextStatement(int at, std::string bytes)
      : Statement(StatementKind::kText, at), text(std::move(bytes), Origin::kScaffold) {}
  MarkedText text;
};

struct OutputStatement : Statement {
  explicit OutputStatement(int at) : Statement(StatementKind::kOutput, at) {}
  ExpressionPtr value;
};

struct IfStatement : Statement {
  explicit IfStatement(int at) : Statement(StatementKind::kIf, at) {}
  std::vector<std::pair<ExpressionPtr, Block>> branches;
  Block otherwise;
};

// Where a value is put: a name, an attribute of a namespace, or a tuple of targets.
struct Target {
  int line = 0;
  NameId name = 0;
  std::string attribute;      // of namespace `name`, if not empty
  std::vector<Target> parts;  // a tuple, if `tuple`
  bool tuple = false;
};

struct ForStatement : Statement {
  explicit ForStatement(int at) : Statement(StatementKind::kFor, at) {}
  Target target;
  ExpressionPtr sequence;
  ExpressionPtr filter;  // may be null
  bool recursive = false;
  Block body;
  Block otherwise;
};

struct SetStatement : Statement {
  explicit SetStatement(int at) : Statement(StatementKind::kSet, at) {}
  Target target;
  ExpressionPtr value;
};

struct SetBlockStatement : Statement {
  explicit SetBlockStatement(int at) : Statement(StatementKind::kSetBlock, at) {}
  Target target;
  ExpressionPtr filter;  // around a BodyExpression; may be null
  Block body;
};

// What macro and call blocks have in common.
struct Signature {
  std::string name;
  std::vector<NameId> parameters;
  std::vector<ExpressionPtr> defaults;  // of the last parameters
  bool uses_varargs = false;
  bool uses_kwargs = false;
  bool uses_caller = false;
  Block body;
};

struct MacroStatement : Statement {
  explicit MacroStatement(int at) : Statement(StatementKind::kMacro, at) {}
  NameId name = 0;
  Signature signature;
};

struct CallBlockStatement : Statement {
  explicit CallBlockStatement(int at) : Statement(StatementKind::kCallBlock, at) {}
  std::unique_ptr<CallExpression> call;  // null for a generation block: the body is just rendered
  Signature signature;
};

struct FilterBlockStatement : Statement {
  explicit FilterBlockStatement(int at) : Statement(StatementKind::kFilterBlock, at) {}
  ExpressionPtr filter;  // around a BodyExpression
  Block body;
};

struct WithStatement : Statement {
  explicit WithStatement(int at) : Statement(StatementKind::kWith, at) {}
  std::vector<std::pair<Target, ExpressionPtr>> values;
  Block body;
};

struct BreakStatement : Statement {
  explicit BreakStatement(int at) : Statement(StatementKind::kBreak, at) {}
};

struct ContinueStatement : Statement {
  explicit ContinueStatement(int at) : Statement(StatementKind::kContinue, at) {}
};

struct TemplateTree {
  Block body;
  std::vector<std::string> names;  // by NameId; the well-known ones first
};

// Names with a meaning of their own; every tree starts with them, in this order.
enum WellKnownName : NameId { kNameLoop, kNameCaller, kNameVarargs, kNameKwargs, kWellKnownNames };

}  // namespace strata::text
