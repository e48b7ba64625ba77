#include <algorithm>
#include <span>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/code_points.h"
#include "strata/text/jinja/arguments.h"
#include "strata/text/jinja/builtins.h"
#include "strata/text/jinja/operators.h"
#include "strata/text/jinja/run.h"
#include "strata/text/jinja/text_operations.h"
#include "strata/text/jinja/value_writer.h"
#include "strata/text/unicode_tables.h"

namespace strata::text {
namespace {

template <Recasing kRecasing>
Value recase(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  BoundArguments("the filter", arguments, {});
  const Value text = to_text(input, run.budget());
  return recased(text.as_text(), kRecasing, run.budget());
}

Value center(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("center", arguments, {"width"}, 1);
  const Value text = to_text(input, run.budget());
  const MarkedText blank(" ", Origin::kScaffold);
  return aligned(text.as_text(), args.integer(0, 80), blank, Alignment::kCenter, run.budget());
}

Value escape(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  BoundArguments("escape", arguments, {});
  const Value text = to_text(input, run.budget());
  MarkedTextBuilder out(run.budget());
  text.as_text().each_piece([&out](std::string_view piece, Origin origin) {
    for (size_t at = 0; at < piece.size();) {
      const size_t next = std::min(piece.find_first_of("&<>'\"", at), piece.size());
      out.add(piece.substr(at, next - at), origin);
      if (next == piece.size()) break;
      switch (piece[next]) {
        case '&':
          out.add("&amp;", origin);
          break;
        case '<':
          out.add("&lt;", origin);
          break;
        case '>':
          out.add("&gt;", origin);
          break;
        case '\'':
          out.add("&#39;", origin);
          break;
        default:
          out.add("&#34;", origin);
      }
      at = next + 1;
    }
  });
  return Value::string(out.take());
}

Value format_filter(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  if (!arguments.named.empty() && !arguments.positional.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "format takes arguments by position or by name, not both");
  }
  const Value text = to_text(input, run.budget());
  if (arguments.named.empty()) {
    const Value tuple = make_list(arguments.positional, run.budget(), ListKind::kTuple);
    return format_percent(text.as_text(), tuple, run.budget());
  }
  Value::Entries entries;
  for (const auto& [name, value] : arguments.named) {
    entries.emplace_back(Value::scaffold(name), value);
  }
  return format_percent(text.as_text(), make_map(std::move(entries), run.budget()), run.budget());
}

Value indent(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("indent", arguments, {"width", "first", "blank"}, 3);
  if (!input.is_string()) {
    throw Error(ErrorCode::kInvalidArgument,
                format("indent needs a string, not a {}", type_name(input)));
  }
  MarkedTextBuilder indention(run.budget());
  if (args.has(0) && args[0].is_string()) {
    indention.add(args.text(0));
  } else {
    const int64_t width = std::max<int64_t>(args.integer(0, 4), 0);
    run.budget().foresee(static_cast<uint64_t>(width), 1);
    for (int64_t i = 0; i < width; ++i) indention.add(" ", Origin::kScaffold);
  }
  const MarkedText space = indention.take();
  // A newline more, so that a final one is not lost in the cut.
  MarkedTextBuilder with_end(run.budget());
  with_end.add(input.as_text());
  with_end.add("\n", Origin::kScaffold);
  const Value lines = split_lines(with_end.take(), false, run.budget());
  const bool blank = args.flag(2, false);
  MarkedTextBuilder out(run.budget());
  bool first = true;
  for (const Value& line : lines.as_list().items()) {
    run.budget().step();
    if (!first) out.add("\n", Origin::kScaffold);
    const bool indented = first ? args.flag(1, false) : blank || !line.as_text().empty();
    if (indented) out.add(space);
    first = false;
    out.add(line.as_text());
  }
  return Value::string(out.take());
}

Value replace(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("replace", arguments, {"old", "new", "count"}, 1);
  const Value text = to_text(input, run.budget());
  const Value from = to_text(args[0], run.budget());
  const Value to = to_text(args[1], run.budget());
  const int64_t count = args.given(2) == nullptr ? -1 : args.integer(2, -1);
  return replaced(text.as_text(), from.as_text(), to.as_text(), count, run.budget());
}

Value trim(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("trim", arguments, {"chars"}, 1);
  const Value text = to_text(input, run.budget());
  const MarkedText* characters = args.given(0) == nullptr ? nullptr : &args.text(0);
  return stripped(text.as_text(), characters, {}, run.budget());
}

Value truncate(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("truncate", arguments, {"length", "killwords", "end", "leeway"}, 4);
  const MarkedText dots("...", Origin::kScaffold);
  const MarkedText& end = args.has(2) ? args.text(2) : dots;
  const int64_t length = args.integer(0, 255);
  const int64_t leeway = args.given(3) == nullptr ? 5 : args.integer(3, 5);
  const int64_t end_length = character_count(end, run.budget());
  if (length < end_length || leeway < 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "truncate needs a length of at least that of its end, and no negative leeway");
  }
  // A short list is short enough, too.
  const int64_t all = length_of(input, run.budget());
  if (all <= leeway || all - leeway <= length) return input;
  if (!input.is_string()) throw Error(ErrorCode::kInvalidArgument, "truncate needs a string");
  const std::string_view bytes = input.as_string();
  size_t cut = code_point_offset(bytes, static_cast<size_t>(length - end_length));
  if (!args.flag(1, false)) {
    const size_t blank = bytes.substr(0, cut).rfind(' ');
    if (blank != std::string_view::npos) cut = blank;
  }
  MarkedTextBuilder out(run.budget());
  out.add(input.as_text(), 0, cut);
  out.add(end);
  return Value::string(out.take());
}

Value wordcount(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  BoundArguments("wordcount", arguments, {});
  const Value text = to_text(input, run.budget());
  const std::string_view bytes = text.as_string();
  run.budget().scan(8 * bytes.size());
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint c = code_point_at(bytes, at);
    const bool letter = c.value == '_' || (character_flags(c.value) & (kAlpha | kNumeric)) != 0;
    if (letter && !inside) ++words;
    inside = letter;
    at += c.length;
  }
  return Value::integer(words);
}

constexpr NamedFilter kFilters[] = {
    {"capitalize", recase<Recasing::kCapitalize>},
    {"center", center},
    {"e", escape},
    {"escape", escape},
    {"format", format_filter},
    {"indent", indent},
    {"lower", recase<Recasing::kLower>},
    {"replace", replace},
    {"title", recase<Recasing::kWords>},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", recase<Recasing::kUpper>},
    {"wordcount", wordcount},
};

}  // namespace

std::span<const NamedFilter> text_filters() { return kFilters; }

}  // namespace strata::text
