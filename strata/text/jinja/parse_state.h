#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "strata/text/jinja/ast.h"
#include "strata/text/jinja/lexer.h"
#include "strata/text/jinja/limits.h"

namespace strata::text {

// The tokens still to read, and what statements and expressions share while they are parsed.
class ParseState {
 public:
  ParseState(std::vector<Token> tokens, const TemplateLimits& limits);

  const Token& current() const { return tokens_[at_]; }
  const Token& ahead(size_t n) const { return tokens_[std::min(at_ + n, tokens_.size() - 1)]; }
  int line() const { return current().line; }
  Token next();
  bool is_operator(std::string_view text) const;
  bool is_name(std::string_view text) const;
  bool is_kind(TokenKind kind) const { return current().kind == kind; }
  // Reads the token if it is this one.
  bool skip_operator(std::string_view text);
  bool skip_name(std::string_view text);
  void expect_operator(std::string_view text);
  void expect_name(std::string_view text);
  void expect_kind(TokenKind kind);
  std::string expect_identifier();
  [[noreturn]] void unexpected(std::string_view expected = "") const;

  NameId name_id(const std::string& name);
  std::vector<std::string> take_names() { return std::move(names_); }

  // Sets a node's depth and refuses one that is too deep.
  void set_depth(Expression& node, int depth_below) const;

  // One level of the parser's own recursion.
  class Level {
   public:
    explicit Level(ParseState& state);
    ~Level() { --state_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    ParseState& state_;
  };

  // The macros whose bodies are being parsed, innermost last.
  std::vector<Signature*> macros;
  // Loops around the current statement, up to the innermost macro.
  int loops = 0;

 private:
  [[noreturn]] void too_deep() const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  const TemplateLimits& limits_;
  int level_ = 0;
  std::vector<std::string> names_;
  std::map<std::string, NameId> ids_;
};

// Reads expressions; see the grammar of Jinja2.
class ExpressionParser {
 public:
  explicit ExpressionParser(ParseState& state) : state_(state) {}

  ExpressionPtr expression(bool with_conditional = true);
  // One expression, or several with commas: a tuple.
  ExpressionPtr tuple(bool with_conditional, bool in_parentheses = false,
                      std::string_view end_name = "");
  // `name(arguments)|...` in front of a block whose text is the input.
  ExpressionPtr filters_of_body();
  // `| name ...` in a set block; null if there are none.
  ExpressionPtr piped_filters_of_body();

 private:
  ExpressionPtr operators(int lowest);
  ExpressionPtr collect(int level, ExpressionPtr first);
  ExpressionPtr negation();
  ExpressionPtr unary(bool with_filters);
  ExpressionPtr primary();
  ExpressionPtr name_or_constant();
  ExpressionPtr list();
  ExpressionPtr map();
  ExpressionPtr postfix(ExpressionPtr node);
  ExpressionPtr subscript(ExpressionPtr node);
  ExpressionPtr filters_and_tests(ExpressionPtr node);
  ExpressionPtr filter(ExpressionPtr node);
  ExpressionPtr test(ExpressionPtr node);
  ExpressionPtr call(ExpressionPtr node);
  int arguments(ArgumentExpressions& out);
  bool at_tuple_end(std::string_view end_name) const;
  int operator_level() const;

  ParseState& state_;
};

}  // namespace strata::text
