// Calls of this form, as templates with XML-like calls write them:
//   <function=NAME>
//   <parameter=KEY>
//   VALUE
//   </parameter>
//   </function>
//   </tool_call>
// A value ends at a closing tag that begins a line (any, if the value does not begin on a line of
// its own) and is followed by what may stand there: another parameter, the end of the function, or
// the end of the call behind which the answer ends or calls again. So a value may hold the tags
// itself. Mended: a closing tag that is missing or doubled, and white space anywhere between tags.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "strata/base/text.h"
#include "strata/server/answer/call_parser.h"

namespace strata::server {
namespace {

constexpr std::string_view kFunction = "<function=";
constexpr std::string_view kFunctionEnd = "</function>";
constexpr std::string_view kParameter = "<parameter=";
constexpr std::string_view kParameterEnd = "</parameter>";

// "NAME>" in front of `text`; the name, or what is known of it so far.
struct Name {
  Found found = Found::kNo;
  std::string text;
};
Name name_in(std::string_view text, bool at_end) {
  const size_t end = text.find_first_of("><\n");
  if (end == std::string_view::npos)
    return {at_end || text.size() > kMaxCallName ? Found::kNo : Found::kMaybe, ""};
  if (text[end] != '>') return {};
  return {Found::kYes, std::string(trimmed(text.substr(0, end)))};
}

class XmlCall final : public CallParser {
 public:
  explicit XmlCall(const Tool& tool) : tool_(tool) {}

  bool advance(std::string& text, bool at_end, AnswerParts& out) override {
    Next next = Next::kAgain;
    while (next == Next::kAgain) {
      switch (state_) {
        case State::kBetween:
          next = between(text, at_end, out);
          break;
        case State::kValue:
          next = value(text, at_end, out);
          break;
        case State::kBehind:
          next = behind(text, at_end);
          break;
      }
    }
    if (next == Next::kMore) return false;
    add_part(out, AnswerPart::Kind::kArguments, n_parameters_ == 0 ? "{}" : "}");
    return true;
  }

 private:
  enum class State { kBetween, kValue, kBehind };
  enum class Next { kAgain, kMore, kOver };

  Next between(std::string& text, bool at_end, AnswerParts& out) {
    const size_t space = leading_space(text);
    const std::string_view rest = std::string_view(text).substr(space);
    if (rest.empty()) return at_end ? Next::kOver : Next::kMore;
    bool maybe = false;
    const auto is = [&](std::string_view tag) {
      const Found found = starts(rest, tag, at_end);
      maybe = maybe || found == Found::kMaybe;
      return found == Found::kYes;
    };
    if (is(kParameter)) {
      const Name name = name_in(rest.substr(kParameter.size()), at_end);
      if (name.found == Found::kMaybe) return Next::kMore;
      if (name.found == Found::kNo) return Next::kOver;
      text.erase(0, space + text.substr(space).find('>') + 1);
      begin_value(name.text, out);
      return Next::kAgain;
    }
    if (is(kParameterEnd)) {
      text.erase(0, space + kParameterEnd.size());
      return Next::kAgain;
    }
    if (is(kFunctionEnd)) {
      text.erase(0, space + kFunctionEnd.size());
      state_ = State::kBehind;
      return Next::kAgain;
    }
    if (is(kCallClose)) {
      text.erase(0, space + kCallClose.size());
      return Next::kOver;
    }
    return maybe ? Next::kMore : Next::kOver;
  }

  Next behind(std::string& text, bool at_end) {
    const size_t space = leading_space(text);
    const Found found = starts(std::string_view(text).substr(space), kCallClose, at_end);
    if (found == Found::kMaybe) return Next::kMore;
    if (found == Found::kYes) text.erase(0, space + kCallClose.size());
    return Next::kOver;
  }

  // ---- values

  void begin_value(const std::string& name, AnswerParts& out) {
    types_ = parameter_types(tool_, name);
    add_part(out, AnswerPart::Kind::kArguments,
             (n_parameters_++ == 0 ? "{" : ",") + dump(Json(name)) + ":");
    streams_ = types_.string && !types_.other;
    if (streams_) add_part(out, AnswerPart::Kind::kArguments, "\"");
    state_ = State::kValue;
    at_begin_ = true;
    searched_ = 0;
    value_.clear();
  }

  Next value(std::string& text, bool at_end, AnswerParts& out) {
    if (at_begin_) {
      if (text.empty() && !at_end) return Next::kMore;
      own_line_ = text.starts_with('\n');
      if (own_line_) text.erase(0, 1);
      at_begin_ = false;
      line_begins_ = true;
    }
    size_t end = 0, taken = 0;
    const Found found = find_end(text, at_end, end, taken);
    if (found == Found::kYes || at_end) {
      if (found != Found::kYes) end = taken = held_from(text, true);
      const bool newline = own_line_ && end > 0 && text[end - 1] == '\n';
      give(std::string_view(text).substr(0, end - (newline ? 1 : 0)), out);
      text.erase(0, taken);
      finish_value(out);
      state_ = State::kBetween;
      return Next::kAgain;
    }
    // The line end in front of a closing tag is not part of the value.
    size_t safe = found == Found::kMaybe ? end : held_from(text, false);
    if (safe > 0 && text[safe - 1] == '\n') --safe;
    if (safe > 0) {
      line_begins_ = text[safe - 1] == '\n';
      give(std::string_view(text).substr(0, safe), out);
      text.erase(0, safe);
      searched_ = searched_ > safe ? searched_ - safe : 0;
    }
    return Next::kMore;
  }

  // Where a tail begins that may be, or grow into, the end of a value whose own closing tag is
  // missing: the tags that close the call, with white space between them, and a part of a tag.
  static size_t held_from(std::string_view text, bool at_end) {
    size_t n_partial = 0;
    for (const std::string_view tag : {kParameterEnd, kFunctionEnd, kCallClose})
      for (size_t n = std::min(text.size(), tag.size() - 1); n > n_partial && !at_end; --n)
        if (text.ends_with(tag.substr(0, n))) n_partial = n;
    size_t end = text.size() - n_partial;
    for (const std::string_view tag : {kCallClose, kFunctionEnd}) {
      const std::string_view rest = text.substr(0, end);
      const size_t last = rest.find_last_not_of(kWhiteSpace);
      if (last == std::string_view::npos || !rest.substr(0, last + 1).ends_with(tag)) continue;
      end = last + 1 - tag.size();
    }
    return end;
  }

  // The closing tag of the value: it begins at `end`, and what it takes ends at `taken`.
  Found find_end(std::string_view text, bool at_end, size_t& end, size_t& taken) {
    while (true) {
      const size_t at = text.find(kParameterEnd, searched_);
      if (at == std::string_view::npos) {
        searched_ = text.size() - std::min(text.size(), kParameterEnd.size() - 1);
        return Found::kNo;
      }
      const bool begins_line = at == 0 ? line_begins_ : text[at - 1] == '\n';
      const Found found = !own_line_ || begins_line
                              ? may_follow(text.substr(at + kParameterEnd.size()), at_end)
                              : Found::kNo;
      end = at;
      taken = at + kParameterEnd.size();
      if (found != Found::kNo) return found;
      searched_ = at + 1;
    }
  }

  static Found may_follow(std::string_view rest, bool at_end) {
    rest.remove_prefix(leading_space(rest));
    while (rest.starts_with(kParameterEnd)) {
      rest.remove_prefix(kParameterEnd.size());
      rest.remove_prefix(leading_space(rest));
    }
    if (rest.empty()) return at_end ? Found::kYes : Found::kMaybe;
    if (rest.starts_with(kParameter) || rest.starts_with(kFunctionEnd)) return Found::kYes;
    if (rest.starts_with(kCallClose)) {
      rest.remove_prefix(kCallClose.size());
      rest.remove_prefix(leading_space(rest));
      if (rest.empty()) return at_end ? Found::kYes : Found::kMaybe;
      return starts(rest, kCallOpen, at_end);
    }
    if (at_end) return Found::kNo;
    for (const std::string_view tag : {kParameterEnd, kParameter, kFunctionEnd, kCallClose})
      if (tag.starts_with(rest)) return Found::kMaybe;
    return Found::kNo;
  }

  void give(std::string_view piece, AnswerParts& out) {
    if (!streams_) {
      value_ += piece;
      return;
    }
    const std::string quoted = dump(Json(std::string(piece)));
    add_part(out, AnswerPart::Kind::kArguments, quoted.substr(1, quoted.size() - 2));
  }

  void finish_value(AnswerParts& out) {
    add_part(out, AnswerPart::Kind::kArguments, streams_ ? "\"" : typed_value(value_, types_));
  }

  const Tool& tool_;
  State state_ = State::kBetween;
  int n_parameters_ = 0;
  // Of the value under way:
  ParameterTypes types_;
  bool streams_ = false;  // a string, which goes out as it comes
  bool at_begin_ = false;
  bool own_line_ = false;     // it began behind a line end
  bool line_begins_ = false;  // what is left of it begins a line
  size_t searched_ = 0;       // no closing tag begins before
  std::string value_;         // if it does not stream
};

}  // namespace

Found find_xml_call(const Tools& tools, std::string& text, bool at_end, const Tool*& tool) {
  const size_t space = leading_space(text);
  const std::string_view rest = std::string_view(text).substr(space);
  const Found found = starts(rest, kFunction, at_end);
  if (found != Found::kYes) return found;
  const Name name = name_in(rest.substr(kFunction.size()), at_end);
  if (name.found != Found::kYes) return name.found;
  tool = find_tool(tools, name.text);
  if (tool == nullptr) return Found::kNo;
  text.erase(0, text.find('>', space) + 1);
  return Found::kYes;
}

std::unique_ptr<CallParser> xml_call(const Tool& tool) { return std::make_unique<XmlCall>(tool); }

}  // namespace strata::server
