#include "strata/text/jinja/parser.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/jinja/lexer.h"
#include "strata/text/jinja/parse_state.h"

namespace strata::text {
namespace {

class StatementParser {
 public:
  StatementParser(std::vector<Token> tokens, const TemplateLimits& limits)
      : state_(std::move(tokens), limits), expressions_(state_) {}

  TemplateTree run() {
    TemplateTree tree;
    tree.body = block({});
    if (!state_.is_kind(TokenKind::kEnd)) state_.unexpected();
    tree.names = state_.take_names();
    return tree;
  }

 private:
  using Ends = std::initializer_list<std::string_view>;

  // Statements up to "{% end" for one of `ends`, whose name is the current token then, or up to the
  // end of the template if there are none.
  Block block(Ends ends) {
    const ParseState::Level level(state_);
    const int begin_line = state_.line();
    Block out;
    for (;;) {
      const int line = state_.line();
      switch (state_.current().kind) {
        case TokenKind::kText:
          out.push_back(std::make_unique<TextStatement>(line, state_.next().text));
          break;
        case TokenKind::kOutputBegin: {
          state_.next();
          out.push_back(output(line));
          state_.expect_kind(TokenKind::kOutputEnd);
          break;
        }
        case TokenKind::kBlockBegin: {
          state_.next();
          if (!state_.is_kind(TokenKind::kName)) state_.unexpected("the name of a tag");
          if (std::find(ends.begin(), ends.end(), state_.current().text) != ends.end()) return out;
          out.push_back(statement());
          state_.expect_kind(TokenKind::kBlockEnd);
          break;
        }
        default:
          if (ends.size() == 0) return out;
          fail_at(state_.line(),
                  format("the template ends, but '{}' is missing for the block of line {}",
                         *(ends.end() - 1), begin_line));
      }
    }
  }

  // The body of a block tag: closes the opening tag, reads up to the end tag's name and that.
  Block body(std::string_view end) {
    state_.expect_kind(TokenKind::kBlockEnd);
    Block out = block({end});
    state_.next();
    return out;
  }

  std::unique_ptr<Statement> output(int line) {
    auto node = std::make_unique<OutputStatement>(line);
    node->value = expressions_.tuple(true);
    return node;
  }

  // Prints its expressions one behind the other, not as a tuple.
  std::unique_ptr<Statement> print_statement(int line) {
    auto text = std::make_unique<ConcatExpression>(line);
    int depth = 0;
    while (!state_.is_kind(TokenKind::kBlockEnd)) {
      if (!text->parts.empty()) state_.expect_operator(",");
      text->parts.push_back(expressions_.expression());
      depth = std::max(depth, text->parts.back()->depth);
    }
    state_.set_depth(*text, depth);
    auto node = std::make_unique<OutputStatement>(line);
    node->value = std::move(text);
    return node;
  }

  std::unique_ptr<Statement> statement() {
    const int line = state_.line();
    const std::string tag = state_.next().text;
    if (tag == "if") return if_statement(line);
    if (tag == "for") return for_statement(line);
    if (tag == "set") return set_statement(line);
    if (tag == "macro") return macro_statement(line);
    if (tag == "call") return call_block(line);
    if (tag == "filter") return filter_block(line);
    if (tag == "with") return with_statement(line);
    if (tag == "print") return print_statement(line);
    if (tag == "generation") {
      auto node = std::make_unique<CallBlockStatement>(line);
      node->signature.body = body("endgeneration");
      return node;
    }
    if (tag == "break" || tag == "continue") {
      if (state_.loops == 0) fail_at(line, format("'{}' outside a loop", tag));
      if (tag == "break") return std::make_unique<BreakStatement>(line);
      return std::make_unique<ContinueStatement>(line);
    }
    static constexpr std::string_view kAbsent[] = {
        "include", "import", "from", "extends", "block", "do", "autoescape", "trans", "debug"};
    if (std::find(std::begin(kAbsent), std::end(kAbsent), tag) != std::end(kAbsent)) {
      throw Error(ErrorCode::kUnsupported,
                  format("line {}: the statement '{}' is not supported", line, tag));
    }
    if (tag.starts_with("end") || tag == "else" || tag == "elif") {
      fail_at(line, format("'{}' is not expected here", tag));
    }
    fail_at(line, format("unknown tag '{}'", tag));
  }

  std::unique_ptr<Statement> if_statement(int line) {
    auto node = std::make_unique<IfStatement>(line);
    for (;;) {
      ExpressionPtr condition = expressions_.tuple(false);
      state_.expect_kind(TokenKind::kBlockEnd);
      Block then = block({"elif", "else", "endif"});
      node->branches.emplace_back(std::move(condition), std::move(then));
      if (!state_.skip_name("elif")) break;
    }
    if (state_.skip_name("else")) {
      node->otherwise = body("endif");
    } else {
      state_.expect_name("endif");
    }
    return node;
  }

  std::unique_ptr<Statement> for_statement(int line) {
    auto node = std::make_unique<ForStatement>(line);
    node->target = target("in", false);
    state_.expect_name("in");
    node->sequence = expressions_.tuple(false, false, "recursive");
    if (state_.skip_name("if")) node->filter = expressions_.expression();
    node->recursive = state_.skip_name("recursive");
    state_.expect_kind(TokenKind::kBlockEnd);
    ++state_.loops;
    node->body = block({"else", "endfor"});
    --state_.loops;
    if (state_.skip_name("else")) {
      node->otherwise = body("endfor");
    } else {
      state_.expect_name("endfor");
    }
    return node;
  }

  std::unique_ptr<Statement> set_statement(int line) {
    Target place = target("", true);
    if (state_.skip_operator("=")) {
      auto node = std::make_unique<SetStatement>(line);
      node->target = std::move(place);
      node->value = expressions_.tuple(true);
      return node;
    }
    auto node = std::make_unique<SetBlockStatement>(line);
    node->target = std::move(place);
    node->filter = expressions_.piped_filters_of_body();
    node->body = body("endset");
    return node;
  }

  std::unique_ptr<Statement> macro_statement(int line) {
    auto node = std::make_unique<MacroStatement>(line);
    node->signature.name = assignable_name();
    node->name = state_.name_id(node->signature.name);
    parameters(node->signature);
    macro_body(node->signature, "endmacro");
    return node;
  }

  std::unique_ptr<Statement> call_block(int line) {
    auto node = std::make_unique<CallBlockStatement>(line);
    node->signature.name = "caller";
    if (state_.is_operator("(")) parameters(node->signature);
    ExpressionPtr call = expressions_.expression();
    if (call->kind != ExpressionKind::kCall) fail_at(line, "'call' needs a call of a macro");
    node->call.reset(static_cast<CallExpression*>(call.release()));
    macro_body(node->signature, "endcall");
    return node;
  }

  void macro_body(Signature& signature, std::string_view end) {
    state_.macros.push_back(&signature);
    const int loops = std::exchange(state_.loops, 0);
    signature.body = body(end);
    state_.loops = loops;
    state_.macros.pop_back();
  }

  void parameters(Signature& out) {
    state_.expect_operator("(");
    while (!state_.skip_operator(")")) {
      if (!out.parameters.empty()) state_.expect_operator(",");
      const int line = state_.line();
      const NameId name = state_.name_id(assignable_name());
      if (std::find(out.parameters.begin(), out.parameters.end(), name) != out.parameters.end()) {
        fail_at(line, "a macro has two parameters of one name");
      }
      out.parameters.push_back(name);
      if (state_.skip_operator("=")) {
        out.defaults.push_back(expressions_.expression());
      } else if (!out.defaults.empty()) {
        fail_at(line, "a parameter without a default follows one with a default");
      }
    }
  }

  std::unique_ptr<Statement> filter_block(int line) {
    auto node = std::make_unique<FilterBlockStatement>(line);
    node->filter = expressions_.filters_of_body();
    node->body = body("endfilter");
    return node;
  }

  std::unique_ptr<Statement> with_statement(int line) {
    auto node = std::make_unique<WithStatement>(line);
    while (!state_.is_kind(TokenKind::kBlockEnd)) {
      if (!node->values.empty()) state_.expect_operator(",");
      Target place = target("", false);
      state_.expect_operator("=");
      node->values.emplace_back(std::move(place), expressions_.expression());
    }
    node->body = body("endwith");
    return node;
  }

  std::string assignable_name() {
    const int line = state_.line();
    std::string name = state_.expect_identifier();
    for (const char* constant : {"true", "false", "none", "True", "False", "None"}) {
      if (name == constant) fail_at(line, format("nothing can be assigned to '{}'", name));
    }
    return name;
  }

  // A name, name.attribute, or several with commas; stops in front of the name `end`.
  Target target(std::string_view end, bool with_attribute) {
    const int line = state_.line();
    Target first = target_part(end, with_attribute);
    if (!first.attribute.empty() || !state_.is_operator(",")) return first;
    Target out;
    out.line = line;
    out.tuple = true;
    out.parts.push_back(std::move(first));
    while (state_.skip_operator(",")) {
      if (state_.is_operator("=") || state_.is_operator(")") ||
          state_.is_kind(TokenKind::kBlockEnd) || (!end.empty() && state_.is_name(end))) {
        break;
      }
      out.parts.push_back(target_part(end, false));
    }
    return out;
  }

  Target target_part(std::string_view end, bool with_attribute) {
    const ParseState::Level level(state_);
    Target out;
    out.line = state_.line();
    if (state_.skip_operator("(")) {
      out = target(end, false);
      state_.expect_operator(")");
      return out;
    }
    out.name = state_.name_id(assignable_name());
    if (with_attribute && state_.skip_operator(".")) out.attribute = state_.expect_identifier();
    return out;
  }

  ParseState state_;
  ExpressionParser expressions_;
};

}  // namespace

TemplateTree parse_template(std::string_view source, const TemplateLimits& limits) {
  return StatementParser(read_tokens(source, limits), limits).run();
}

}  // namespace strata::text
