// Calls of this form: {"name": "NAME", "arguments": {...}} </tool_call>. The arguments go out as
// they come; where they break off or break the rules of JSON they are brought to an end, and what
// follows is text again.
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "strata/base/error.h"
#include "strata/server/answer/call_parser.h"
#include "strata/server/answer/json_scanner.h"

namespace strata::server {
namespace {

constexpr std::string_view kName = "\"name\"";
constexpr size_t kMaxHead = 4096;  // of a call, up to the name
// Some templates say the second.
constexpr std::string_view kArgumentNames[] = {"\"arguments\"", "\"parameters\""};

// Steps over fixed pieces with white space in front of each.
class Steps {
 public:
  Steps(std::string_view text, bool at_end) : text_(text), at_end_(at_end) {}
  Found take(std::string_view piece) {
    skip_space();
    const Found found = starts(rest(), piece, at_end_);
    if (found == Found::kYes) at_ += piece.size();
    return found;
  }
  // A whole JSON string.
  Found take_string(std::string& value) {
    skip_space();
    JsonScanner scanner;
    size_t n = 0;
    while (n < rest().size() && scanner.feed(rest()[n])) ++n;
    if (!scanner.done()) return n < rest().size() || at_end_ ? Found::kNo : Found::kMaybe;
    if (rest().front() != '"') return Found::kNo;
    try {
      value = parse_json(rest().substr(0, n)).get<std::string>();
    } catch (const Error&) {
      return Found::kNo;
    }
    at_ += n;
    return Found::kYes;
  }
  size_t at() const { return at_; }

 private:
  std::string_view rest() const { return text_.substr(at_); }
  void skip_space() { at_ += leading_space(rest()); }

  std::string_view text_;
  bool at_end_;
  size_t at_ = 0;
};

class JsonCall final : public CallParser {
 public:
  bool advance(std::string& text, bool at_end, AnswerParts& out) override {
    if (state_ == State::kKey && !key(text, at_end)) return false;
    if (state_ == State::kArguments && !arguments(text, at_end, out)) return false;
    return tail(text, at_end, out);
  }

 private:
  enum class State { kKey, kArguments, kTail };

  // False: more text is needed.
  bool key(std::string& text, bool at_end) {
    state_ = State::kTail;
    for (const std::string_view name : kArgumentNames) {
      Steps steps(text, at_end);
      Found found = Found::kYes;
      for (const std::string_view piece : {std::string_view(","), name, std::string_view(":")})
        if (found == Found::kYes) found = steps.take(piece);
      if (found == Found::kYes) {
        text.erase(0, steps.at());
        state_ = State::kArguments;
        return true;
      }
      if (found == Found::kMaybe) state_ = State::kKey;
    }
    return state_ != State::kKey;
  }

  bool arguments(std::string& text, bool at_end, AnswerParts& out) {
    if (!scanner_.started()) text.erase(0, leading_space(text));
    if (text.empty() && !at_end) return false;
    if (!scanner_.started() && !text.starts_with('{')) {
      state_ = State::kTail;
      return true;
    }
    size_t n = 0;
    while (n < text.size() && scanner_.feed(text[n])) ++n;
    add_part(out, AnswerPart::Kind::kArguments, text.substr(0, n));
    any_ = any_ || n > 0;
    const bool stopped = n < text.size();
    text.erase(0, n);
    if (!scanner_.done() && !stopped && !at_end) return false;
    if (!scanner_.done()) add_part(out, AnswerPart::Kind::kArguments, scanner_.completion());
    state_ = State::kTail;
    return true;
  }

  bool tail(std::string& text, bool at_end, AnswerParts& out) {
    if (!std::exchange(told_, true) && !any_) add_part(out, AnswerPart::Kind::kArguments, "{}");
    Steps steps(text, at_end);
    const Found brace = steps.take("}");
    if (brace == Found::kMaybe) return false;
    const Found close = steps.take(kCallClose);
    if (close == Found::kMaybe) return false;
    if (close == Found::kYes || brace == Found::kYes) text.erase(0, steps.at());
    return true;
  }

  State state_ = State::kKey;
  JsonScanner scanner_;
  bool any_ = false;   // some of the arguments are out
  bool told_ = false;  // all of them
};

}  // namespace

Found find_json_call(const Tools& tools, std::string& text, bool at_end, const Tool*& tool) {
  Steps steps(text, at_end || text.size() > kMaxHead);
  for (const std::string_view piece : {std::string_view("{"), kName, std::string_view(":")}) {
    const Found found = steps.take(piece);
    if (found != Found::kYes) return found;
  }
  std::string name;
  const Found found = steps.take_string(name);
  if (found != Found::kYes) return found;
  tool = find_tool(tools, name);
  if (tool == nullptr) return Found::kNo;
  text.erase(0, steps.at());
  return Found::kYes;
}

std::unique_ptr<CallParser> json_call() { return std::make_unique<JsonCall>(); }

}  // namespace strata::server
