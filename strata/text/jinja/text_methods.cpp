#include <algorithm>
#include <iterator>
#include <optional>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/code_points.h"
#include "strata/text/jinja/arguments.h"
#include "strata/text/jinja/builtins.h"
#include "strata/text/jinja/operators.h"
#include "strata/text/jinja/run.h"
#include "strata/text/jinja/text_operations.h"
#include "strata/text/string_search.h"
#include "strata/text/unicode_tables.h"

namespace strata::text {
namespace {

using Method = Value (*)(TemplateRun& run, const MarkedText& self, const CallArguments& arguments);

struct NamedMethod {
  std::string_view name;
  Method function;
};

Value boolean(bool value) { return Value::boolean(value); }

template <Recasing kRecasing>
Value recase(TemplateRun& run, const MarkedText& self, const CallArguments& arguments) {
  BoundArguments("the method", arguments, {});
  return recased(self, kRecasing, run.budget());
}

template <bool kLeft, bool kRight>
Value strip(TemplateRun& run, const MarkedText& self, const CallArguments& arguments) {
  const BoundArguments args("strip", arguments, {"chars"}, 1);
  const MarkedText* characters = args.given(0) == nullptr ? nullptr : &args.text(0);
  return stripped(self, characters, {kLeft, kRight}, run.budget());
}

template <bool kFromRight>
Value split(TemplateRun& run, const MarkedText& self, const CallArguments& arguments) {
  const BoundArguments args("split", arguments, {"sep", "maxsplit"}, 2);
  const MarkedText* separator = args.given(0) == nullptr ? nullptr : &args.text(0);
  return split_text(self, separator, args.integer(1, -1), kFromRight, run.budget());
}

Value splitlines(TemplateRun& run, const MarkedText& self, const CallArguments& arguments) {
  const BoundArguments args("splitlines", arguments, {"keepends"}, 1);
  return split_lines(self, args.flag(0, false), run.budget());
}

// The part of a text that the arguments start and end choose, in bytes. Empty if start is behind
// the end, where even an empty text is not found.
std::optional<ByteRange> window(TemplateRun& run, const MarkedText& self,
                                const BoundArguments& args, size_t first) {
  if (args.given(first) == nullptr && args.given(first + 1) == nullptr) {
    return ByteRange{0, self.size()};
  }
  const int64_t length = character_count(self, run.budget());
  const auto place = [&](size_t i, int64_t otherwise) {
    int64_t at = args.given(i) == nullptr ? otherwise : args.integer(i, otherwise);
    if (at < 0) at = std::max<int64_t>(at + length, 0);
    return at;
  };
  const int64_t begin = place(first, 0);
  const int64_t end = std::min(place(first + 1, length), length);
  if (begin > end) return std::nullopt;
  const size_t from = code_point_offset(self.bytes(), static_cast<size_t>(begin));
  return ByteRange{from, code_point_offset(self.bytes(), static_cast<size_t>(end - begin), from)};
}

template <bool kAtEnd>
Value has_affix(TemplateRun& run, const MarkedText& self, const CallArguments& arguments) {
  const BoundArguments args(kAtEnd ? "endswith" : "startswith", arguments,
                            {kAtEnd ? "suffix" : "prefix", "start", "end"}, 2);
  const std::optional<ByteRange> range = window(run, self, args, 1);
  if (!range) return boolean(false);
  const std::string_view text = self.bytes().substr(range->begin, range->end - range->begin);
  const auto matches = [&](const Value& affix) {
    if (!affix.is_string()) {
      throw Error(ErrorCode::kInvalidArgument,
                  format("{} needs a string or a tuple of strings, not a {}",
                         kAtEnd ? "endswith" : "startswith", type_name(affix)));
    }
    run.budget().scan(affix.as_text().size());
    return kAtEnd ? text.ends_with(affix.as_string()) : text.starts_with(affix.as_string());
  };
  if (args[0].is_list() && args[0].as_list().kind() == ListKind::kTuple) {
    const Value::Items& affixes = args[0].as_list().items();
    run.budget().step(affixes.size());
    return boolean(std::any_of(affixes.begin(), affixes.end(), matches));
  }
  return boolean(matches(args[0]));
}

template <bool kFromRight, bool kMustBeThere>
Value find(TemplateRun& run, const MarkedText& self, const CallArguments& arguments) {
  const BoundArguments args("find", arguments, {"sub", "start", "end"}, 2);
  const std::optional<ByteRange> range = window(run, self, args, 1);
  size_t found = std::string_view::npos;
  const std::string_view wanted = args.text(0).bytes();
  run.budget().scan(2 * self.size() + wanted.size());
  if (range) {
    const std::string_view text = self.bytes().substr(0, range->end);
    found = kFromRight ? find_last(text, wanted) : find_first(text, wanted, range->begin);
    if (found != std::string_view::npos && found < range->begin) found = std::string_view::npos;
  }
  if (found == std::string_view::npos) {
    if (kMustBeThere) throw Error(ErrorCode::kInvalidArgument, "index: the text is not found");
    return Value::integer(-1);
  }
  return Value::integer(static_cast<int64_t>(
      self.ascii() ? found : count_code_points(self.bytes().substr(0, found))));
}

Value count(TemplateRun& run, const MarkedText& self, const CallArguments& arguments) {
  const BoundArguments args("count", arguments, {"sub", "start", "end"}, 2);
  const std::optional<ByteRange> range = window(run, self, args, 1);
  if (!range) return Value::integer(0);
  const std::string_view text = self.bytes().substr(range->begin, range->end - range->begin);
  const std::string_view wanted = args.text(0).bytes();
  run.budget().scan(text.size() + wanted.size());
  if (wanted.empty()) return Value::integer(static_cast<int64_t>(count_code_points(text)) + 1);
  int64_t n = 0;
  for (size_t at = 0; (at = find_first(text, wanted, at)) != std::string_view::npos;) {
    ++n;
    at += wanted.size();
  }
  return Value::integer(n);
}

Value replace(TemplateRun& run, const MarkedText& self, const CallArguments& arguments) {
  const BoundArguments args("replace", arguments, {"old", "new", "count"}, 1);
  return replaced(self, args.text(0), args.text(1), args.integer(2, -1), run.budget());
}

Value join(TemplateRun& run, const MarkedText& self, const CallArguments& arguments) {
  const BoundArguments args("join", arguments, {"iterable"});
  const Value items = iterated(args[0], run.budget());
  for (const Value& item : items.as_list().items()) {
    run.budget().step();
    if (!item.is_string()) {
      throw Error(ErrorCode::kInvalidArgument,
                  format("join needs strings, not a {}", type_name(item)));
    }
  }
  return joined_items(self, items.as_list().items(), run.budget());
}

Value format_method(TemplateRun& run, const MarkedText& self, const CallArguments& arguments) {
  return format_braces(self, arguments, run.budget());
}

template <bool kSuffix>
Value remove_affix(TemplateRun& run, const MarkedText& self, const CallArguments& arguments) {
  const BoundArguments args(kSuffix ? "removesuffix" : "removeprefix", arguments, {"affix"});
  const std::string_view text = self.bytes();
  const std::string_view affix = args.text(0).bytes();
  size_t begin = 0;
  size_t end = text.size();
  if (kSuffix && text.ends_with(affix)) end -= affix.size();
  if (!kSuffix && text.starts_with(affix)) begin = affix.size();
  return make_slice(self, begin, end, run.budget());
}

// All characters have one of the flags, and there is at least one character.
template <uint32_t kFlags>
Value is_all(TemplateRun& run, const MarkedText& self, const CallArguments& arguments) {
  BoundArguments("the method", arguments, {});
  run.budget().scan(8 * self.size());
  for (size_t at = 0; at < self.size();) {
    const CodePoint c = code_point_at(self.bytes(), at);
    if ((character_flags(c.value) & kFlags) == 0) return boolean(false);
    at += c.length;
  }
  return boolean(!self.empty());
}

Value isspace(TemplateRun& run, const MarkedText& self, const CallArguments& arguments) {
  BoundArguments("isspace", arguments, {});
  run.budget().scan(self.size());
  size_t begin = 0;
  size_t end = self.size();
  trim_spaces(self.bytes(), begin, end);
  return boolean(!self.empty() && begin == end);
}

// There are characters with case, and all of them have this one.
template <uint32_t kWanted>
Value has_case(TemplateRun& run, const MarkedText& self, const CallArguments& arguments) {
  BoundArguments("the method", arguments, {});
  run.budget().scan(8 * self.size());
  bool any = false;
  for (size_t at = 0; at < self.size();) {
    const CodePoint c = code_point_at(self.bytes(), at);
    const uint32_t flags = character_flags(c.value) & (kUpper | kLower | kTitle);
    if ((flags & ~kWanted) != 0) return boolean(false);
    any = any || flags != 0;
    at += c.length;
  }
  return boolean(any);
}

Value istitle(TemplateRun& run, const MarkedText& self, const CallArguments& arguments) {
  BoundArguments("istitle", arguments, {});
  run.budget().scan(8 * self.size());
  bool any = false;
  bool inside = false;
  for (size_t at = 0; at < self.size();) {
    const CodePoint c = code_point_at(self.bytes(), at);
    const uint32_t flags = character_flags(c.value);
    const bool begins = (flags & (kUpper | kTitle)) != 0;
    const bool goes_on = (flags & kLower) != 0;
    if ((begins && inside) || (goes_on && !inside)) return boolean(false);
    inside = begins || goes_on;
    any = any || inside;
    at += c.length;
  }
  return boolean(any);
}

template <Alignment kAlignment>
Value align(TemplateRun& run, const MarkedText& self, const CallArguments& arguments) {
  const BoundArguments args("the method", arguments, {"width", "fillchar"}, 1);
  static const MarkedText blank(" ", Origin::kScaffold);
  const MarkedText& fill = args.has(1) ? args.text(1) : blank;
  return aligned(self, args.integer(0, 0), fill, kAlignment, run.budget());
}

Value zfill(TemplateRun& run, const MarkedText& self, const CallArguments& arguments) {
  const BoundArguments args("zfill", arguments, {"width"});
  const MarkedText zero("0", Origin::kScaffold);
  const std::string_view text = self.bytes();
  const bool sign = text.starts_with('-') || text.starts_with('+');
  const Value digits = make_slice(self, sign ? 1 : 0, self.size(), run.budget());
  const int64_t width = std::max<int64_t>(args.integer(0, 0), 0);
  const Value filled =
      aligned(digits.as_text(), sign ? width - 1 : width, zero, Alignment::kRight, run.budget());
  MarkedTextBuilder out(run.budget());
  out.add(self, 0, sign ? 1 : 0);
  out.add(filled.as_text());
  return Value::string(out.take());
}

template <bool kFromRight>
Value partition(TemplateRun& run, const MarkedText& self, const CallArguments& arguments) {
  const BoundArguments args("partition", arguments, {"sep"});
  const MarkedText& separator = args.text(0);
  if (separator.empty()) throw Error(ErrorCode::kInvalidArgument, "partition: an empty separator");
  run.budget().scan(2 * self.size() + separator.size());
  const size_t found = kFromRight ? find_last(self.bytes(), separator.bytes())
                                  : find_first(self.bytes(), separator.bytes());
  const auto part = [&](size_t begin, size_t end) {
    return make_slice(self, begin, end, run.budget());
  };
  Value::Items parts;
  if (found != std::string_view::npos) {
    const size_t behind = found + separator.size();
    parts = {part(0, found), part(found, behind), part(behind, self.size())};
  } else if (kFromRight) {
    parts = {Value::scaffold(""), Value::scaffold(""), part(0, self.size())};
  } else {
    parts = {part(0, self.size()), Value::scaffold(""), Value::scaffold("")};
  }
  return make_list(std::move(parts), run.budget(), ListKind::kTuple);
}

constexpr NamedMethod kMethods[] = {
    {"capitalize", recase<Recasing::kCapitalize>},
    {"center", align<Alignment::kCenter>},
    {"count", count},
    {"endswith", has_affix<true>},
    {"find", find<false, false>},
    {"format", format_method},
    {"index", find<false, true>},
    {"isalnum", is_all<kAlpha | kDecimal | kDigit | kNumeric>},
    {"isalpha", is_all<kAlpha>},
    {"isdecimal", is_all<kDecimal>},
    {"isdigit", is_all<kDigit>},
    {"islower", has_case<kLower>},
    {"isnumeric", is_all<kNumeric>},
    {"isspace", isspace},
    {"istitle", istitle},
    {"isupper", has_case<kUpper>},
    {"join", join},
    {"ljust", align<Alignment::kLeft>},
    {"lower", recase<Recasing::kLower>},
    {"lstrip", strip<true, false>},
    {"partition", partition<false>},
    {"removeprefix", remove_affix<false>},
    {"removesuffix", remove_affix<true>},
    {"replace", replace},
    {"rfind", find<true, false>},
    {"rindex", find<true, true>},
    {"rjust", align<Alignment::kRight>},
    {"rpartition", partition<true>},
    {"rsplit", split<true>},
    {"rstrip", strip<false, true>},
    {"split", split<false>},
    {"splitlines", splitlines},
    {"startswith", has_affix<false>},
    {"strip", strip<true, true>},
    {"swapcase", recase<Recasing::kSwap>},
    {"title", recase<Recasing::kTitle>},
    {"upper", recase<Recasing::kUpper>},
    {"zfill", zfill},
};

Method find_method(std::string_view name) {
  const auto found =
      std::lower_bound(std::begin(kMethods), std::end(kMethods), name,
                       [](const NamedMethod& m, std::string_view n) { return m.name < n; });
  return found != std::end(kMethods) && found->name == name ? found->function : nullptr;
}

}  // namespace

bool has_text_method(std::string_view name) { return find_method(name) != nullptr; }

std::optional<Value> call_text_method(TemplateRun& run, const Value& self, std::string_view name,
                                      const CallArguments& arguments) {
  const Method method = find_method(name);
  if (method == nullptr) return std::nullopt;
  return method(run, self.as_text(), arguments);
}

}  // namespace strata::text
