#include "strata/text/jinja/parse_state.h"

#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::text {
namespace {

std::string_view described(TokenKind kind) {
  switch (kind) {
    case TokenKind::kText:
      return "text";
    case TokenKind::kOutputBegin:
      return "'{{'";
    case TokenKind::kOutputEnd:
      return "'}}'";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kName:
      return "a name";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kInteger:
      return "an integer";
    case TokenKind::kFloat:
      return "a number";
    case TokenKind::kOperator:
      return "an operator";
    case TokenKind::kEnd:
      return "the end of the template";
  }
  return "a token";
}

std::string described(const Token& token) {
  const bool literal = token.kind == TokenKind::kName || token.kind == TokenKind::kInteger ||
                       token.kind == TokenKind::kFloat || token.kind == TokenKind::kOperator;
  return literal ? format("'{}'", token.text) : std::string(described(token.kind));
}

}  // namespace

ParseState::ParseState(std::vector<Token> tokens, const TemplateLimits& limits)
    : tokens_(std::move(tokens)), limits_(limits) {
  for (const char* known : {"loop", "caller", "varargs", "kwargs"}) name_id(known);
}

Token ParseState::next() {
  Token token = std::move(tokens_[at_]);
  // The last token stays: it is met as often as one reads on.
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool ParseState::is_operator(std::string_view text) const {
  return current().kind == TokenKind::kOperator && current().text == text;
}

bool ParseState::is_name(std::string_view text) const {
  return current().kind == TokenKind::kName && current().text == text;
}

bool ParseState::skip_operator(std::string_view text) {
  if (!is_operator(text)) return false;
  next();
  return true;
}

bool ParseState::skip_name(std::string_view text) {
  if (!is_name(text)) return false;
  next();
  return true;
}

void ParseState::expect_operator(std::string_view text) {
  if (!skip_operator(text)) unexpected(format("'{}'", text));
}

void ParseState::expect_name(std::string_view text) {
  if (!skip_name(text)) unexpected(format("'{}'", text));
}

void ParseState::expect_kind(TokenKind kind) {
  if (current().kind != kind) unexpected(described(kind));
  next();
}

std::string ParseState::expect_identifier() {
  if (current().kind != TokenKind::kName) unexpected("a name");
  return next().text;
}

void ParseState::unexpected(std::string_view expected) const {
  if (expected.empty()) fail_at(line(), format("{} is not expected here", described(current())));
  fail_at(line(), format("expected {}, got {}", expected, described(current())));
}

NameId ParseState::name_id(const std::string& name) {
  const auto [found, added] = ids_.try_emplace(name, static_cast<NameId>(names_.size()));
  if (added) names_.push_back(name);
  return found->second;
}

void ParseState::set_depth(Expression& node, int depth_below) const {
  node.depth = depth_below + 1;
  if (node.depth > limits_.max_nesting) too_deep();
}

void ParseState::too_deep() const {
  fail_at(line(), format("nested too deep: more than {} levels", limits_.max_nesting));
}

ParseState::Level::Level(ParseState& state) : state_(state) {
  if (state.level_ >= state.limits_.max_nesting) state.too_deep();
  ++state.level_;
}

}  // namespace strata::text
