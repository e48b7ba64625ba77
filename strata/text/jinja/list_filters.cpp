#include <algorithm>
#include <numeric>
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

namespace strata::text {
namespace {

// The items of a loop over the input; `holder` keeps them alive.
const Value::Items& items_of(TemplateRun& run, const Value& input, Value& holder) {
  holder = iterated(input, run.budget());
  const Value::Items& items = holder.as_list().items();
  run.budget().step(items.size());
  return items;
}

// The attribute argument of map, sort, ...: "a.b.0", or one index.
class Path {
 public:
  explicit Path(const Value* attribute) {
    if (attribute == nullptr) return;
    if (!attribute->is_string()) {
      parts_.push_back(*attribute);
      return;
    }
    std::string_view rest = attribute->as_string();
    for (;;) {
      const size_t dot = std::min(rest.find('.'), rest.size());
      const std::string_view part = rest.substr(0, dot);
      const bool index = !part.empty() && part.size() < 10 &&
                         part.find_first_not_of("0123456789") == std::string_view::npos;
      parts_.push_back(index ? Value::integer(*parse_integer(part, 10))
                             : Value::content(std::string(part)));
      if (dot == rest.size()) break;
      rest.remove_prefix(dot + 1);
    }
  }

  Value get(TemplateRun& run, const Value& item, const Value* otherwise = nullptr) const {
    Value value = item;
    for (const Value& part : parts_) {
      value = run.item(value, part);
      if (otherwise != nullptr && value.is_undefined()) value = *otherwise;
    }
    return value;
  }

 private:
  std::vector<Value> parts_;
};

Value folded(TemplateRun& run, Value value, bool case_sensitive) {
  if (case_sensitive || !value.is_string()) return value;
  return recased(value.as_text(), Recasing::kLower, run.budget());
}

// The items in the order of their keys.
Value::Items sorted(TemplateRun& run, const Value::Items& items, const Value::Items& keys,
                    bool descending) {
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return descending ? less(keys[b], keys[a], run.budget()) : less(keys[a], keys[b], run.budget());
  });
  Value::Items out;
  out.reserve(items.size());
  for (const uint32_t i : order) out.push_back(items[i]);
  return out;
}

// As in Jinja2: what counts as false has no items, whatever it is.
Value or_nothing(const Value& input) { return truthy(input) ? input : Value::undefined(""); }

Value batch(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("batch", arguments, {"linecount", "fill_with"}, 1);
  const int64_t size = args.integer(0, 1);
  Value holder;
  ListBuilder rows(run.budget());
  Value::Items row;
  const auto finish_row = [&] {
    rows.add(make_list(std::move(row), run.budget()));
    row.clear();
  };
  for (const Value& item : items_of(run, input, holder)) {
    if (static_cast<int64_t>(row.size()) == size) finish_row();
    row.push_back(item);
  }
  if (!row.empty()) {
    if (args.given(1) != nullptr && static_cast<int64_t>(row.size()) < size) {
      run.budget().foresee(static_cast<uint64_t>(size), sizeof(Value));
      row.resize(static_cast<size_t>(size), args[1]);
    }
    finish_row();
  }
  return rows.take(ListKind::kGenerator);
}

Value slice_filter(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("slice", arguments, {"slices", "fill_with"}, 1);
  const int64_t n = args.integer(0, 1);
  if (n <= 0) throw Error(ErrorCode::kInvalidArgument, "slice needs a number above 0");
  Value holder;
  const Value::Items& items = items_of(run, input, holder);
  const auto length = static_cast<int64_t>(items.size());
  ListBuilder slices(run.budget());
  auto at = items.begin();
  for (int64_t i = 0; i < n; ++i) {
    run.budget().step();
    const int64_t size = length / n + (i < length % n ? 1 : 0);
    Value::Items part(at, at + size);
    at += size;
    if (args.given(1) != nullptr && i >= length % n) part.push_back(args[1]);
    slices.add(make_list(std::move(part), run.budget()));
  }
  return slices.take(ListKind::kGenerator);
}

Value dictsort(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("dictsort", arguments, {"case_sensitive", "by", "reverse"}, 3);
  if (!input.is_map()) {
    throw Error(ErrorCode::kInvalidArgument,
                format("dictsort needs a map, not a {}", type_name(input)));
  }
  const std::string_view by = args.has(1) ? args.text(1).bytes() : "key";
  if (by != "key" && by != "value") {
    throw Error(ErrorCode::kInvalidArgument, "dictsort sorts by 'key' or by 'value'");
  }
  Value::Items pairs;
  Value::Items keys;
  for (const auto& [key, value] : input.as_map().entries()) {
    pairs.push_back(make_list({key, value}, run.budget(), ListKind::kTuple));
    keys.push_back(folded(run, by == "key" ? key : value, args.flag(0, false)));
  }
  return make_list(sorted(run, pairs, keys, args.flag(2, false)), run.budget());
}

Value first(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  BoundArguments("first", arguments, {});
  if (input.is_string() && !input.as_text().empty()) {
    return make_slice(input.as_text(), 0, code_point_at(input.as_string(), 0).length, run.budget());
  }
  Value holder;
  const Value::Items& items = items_of(run, input, holder);
  return items.empty() ? Value::undefined("no first item: the sequence is empty") : items.front();
}

Value last(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  BoundArguments("last", arguments, {});
  if (input.is_string() && !input.as_text().empty()) {
    const size_t size = input.as_text().size();
    const size_t length = code_point_before(input.as_string(), size).length;
    return make_slice(input.as_text(), size - length, size, run.budget());
  }
  Value holder;
  const Value::Items& items = items_of(run, input, holder);
  return items.empty() ? Value::undefined("no last item: the sequence is empty") : items.back();
}

Value items_filter(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  BoundArguments("items", arguments, {});
  Value::Items pairs;
  if (input.is_map()) {
    for (const auto& [key, value] : input.as_map().entries()) {
      pairs.push_back(make_list({key, value}, run.budget(), ListKind::kTuple));
    }
  } else if (!input.is_undefined()) {
    throw Error(ErrorCode::kInvalidArgument,
                format("items needs a map, not a {}", type_name(input)));
  }
  return make_list(std::move(pairs), run.budget(), ListKind::kGenerator);
}

Value join(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("join", arguments, {"d", "attribute"}, 2);
  const Value separator = args.has(0) ? to_text(args[0], run.budget()) : Value::scaffold("");
  Value holder;
  const Value::Items& items = items_of(run, input, holder);
  if (args.given(1) == nullptr) return joined_items(separator.as_text(), items, run.budget());
  const Path path(&args[1]);
  ListBuilder parts(run.budget());
  for (const Value& item : items) parts.add(path.get(run, item));
  return joined_items(separator.as_text(), parts.items(), run.budget());
}

Value length(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  BoundArguments("length", arguments, {});
  return Value::integer(length_of(input, run.budget()));
}

Value list(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  BoundArguments("list", arguments, {});
  Value holder;
  ListBuilder out(run.budget());
  out.add(items_of(run, input, holder));
  return out.take();
}

// The arguments behind the first n.
CallArguments without_first(const CallArguments& arguments, size_t n) {
  CallArguments rest = arguments;
  rest.positional.erase(
      rest.positional.begin(),
      rest.positional.begin() + static_cast<ptrdiff_t>(std::min(n, rest.positional.size())));
  return rest;
}

std::string_view called_name(std::string_view filter, const CallArguments& arguments, size_t i) {
  if (i >= arguments.positional.size() || !arguments.positional[i].is_string()) {
    throw Error(ErrorCode::kInvalidArgument, format("{} needs a name, a string", filter));
  }
  return arguments.positional[i].as_string();
}

Value map(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  Value holder;
  ListBuilder out(run.budget());
  if (arguments.positional.empty()) {
    const BoundArguments args("map", arguments, {"attribute", "default"}, 1);
    const Path path(&args[0]);
    for (const Value& item : items_of(run, or_nothing(input), holder)) {
      out.add(path.get(run, item, args.given(1)));
    }
  } else {
    const std::string_view name = called_name("map", arguments, 0);
    const CallArguments rest = without_first(arguments, 1);
    for (const Value& item : items_of(run, or_nothing(input), holder)) {
      out.add(run.filter(name, item, rest));
    }
  }
  return out.take(ListKind::kGenerator);
}

// select, reject, selectattr and rejectattr.
template <bool kKeep, bool kAttribute>
Value choose(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  const size_t skip = kAttribute ? 1 : 0;
  if (arguments.positional.size() < skip) {
    throw Error(ErrorCode::kInvalidArgument, "the name of an attribute is missing");
  }
  const Path path(kAttribute ? &arguments.positional[0] : nullptr);
  const bool by_test = arguments.positional.size() > skip;
  const std::string_view name = by_test ? called_name("select", arguments, skip) : "";
  const CallArguments rest = without_first(arguments, skip + 1);
  Value holder;
  ListBuilder out(run.budget());
  for (const Value& item : items_of(run, or_nothing(input), holder)) {
    const Value value = path.get(run, item);
    const bool yes = by_test ? run.test(name, value, rest) : truthy(value);
    if (yes == kKeep) out.add(item);
  }
  return out.take(ListKind::kGenerator);
}

template <bool kLargest>
Value extreme(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  const BoundArguments args(kLargest ? "max" : "min", arguments, {"case_sensitive", "attribute"},
                            2);
  const Path path(args.given(1));
  Value holder;
  const Value::Items& items = items_of(run, input, holder);
  if (items.empty()) return Value::undefined("no item: the sequence is empty");
  size_t best = 0;
  Value best_key;
  for (size_t i = 0; i < items.size(); ++i) {
    Value key = folded(run, path.get(run, items[i]), args.flag(0, false));
    const bool better =
        i > 0 && (kLargest ? less(best_key, key, run.budget()) : less(key, best_key, run.budget()));
    if (i > 0 && !better) continue;
    best = i;
    best_key = std::move(key);
  }
  return items[best];
}

Value reverse(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  BoundArguments("reverse", arguments, {});
  if (input.is_string()) {
    return slice(input, {Value(), Value(), Value::integer(-1)}, run.budget());
  }
  Value holder;
  ListBuilder out(run.budget());
  out.add(items_of(run, input, holder));
  std::reverse(out.items().begin(), out.items().end());
  return out.take(ListKind::kGenerator);
}

Value sort(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("sort", arguments, {"reverse", "case_sensitive", "attribute"}, 3);
  Value holder;
  const Value::Items& items = items_of(run, input, holder);
  // "a,b" sorts by a, then by b.
  std::vector<Path> paths;
  if (args.given(2) != nullptr && args[2].is_string()) {
    const MarkedText comma(",", Origin::kScaffold);
    const Value names = split_text(args[2].as_text(), &comma, -1, false, run.budget());
    for (const Value& name : names.as_list().items()) paths.emplace_back(&name);
  } else {
    paths.emplace_back(args.given(2));
  }
  Value::Items keys;
  for (const Value& item : items) {
    Value::Items parts;
    for (const Path& path : paths) {
      parts.push_back(folded(run, path.get(run, item), args.flag(1, false)));
    }
    keys.push_back(make_list(std::move(parts), run.budget()));
  }
  return make_list(sorted(run, items, keys, args.flag(0, false)), run.budget());
}

Value sum(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("sum", arguments, {"attribute", "start"}, 2);
  const Path path(args.given(0));
  Value total = args.has(1) ? args[1] : Value::integer(0);
  if (total.is_string()) throw Error(ErrorCode::kInvalidArgument, "sum does not add strings");
  Value holder;
  for (const Value& item : items_of(run, input, holder)) {
    total = apply(Arithmetic::kAdd, total, path.get(run, item), run.budget());
  }
  return total;
}

Value unique(TemplateRun& run, const Value& input, const CallArguments& arguments) {
  const BoundArguments args("unique", arguments, {"case_sensitive", "attribute"}, 2);
  const Path path(args.given(1));
  Value holder;
  Value::Items seen;
  ListBuilder out(run.budget());
  for (const Value& item : items_of(run, input, holder)) {
    Value key = folded(run, path.get(run, item), args.flag(0, false));
    const bool known = std::any_of(seen.begin(), seen.end(), [&](const Value& other) {
      return equal(key, other, run.budget());
    });
    if (known) continue;
    seen.push_back(std::move(key));
    out.add(item);
  }
  return out.take(ListKind::kGenerator);
}

constexpr NamedFilter kFilters[] = {
    {"batch", batch},
    {"count", length},
    {"dictsort", dictsort},
    {"first", first},
    {"items", items_filter},
    {"join", join},
    {"last", last},
    {"length", length},
    {"list", list},
    {"map", map},
    {"max", extreme<true>},
    {"min", extreme<false>},
    {"reject", choose<false, false>},
    {"rejectattr", choose<false, true>},
    {"reverse", reverse},
    {"select", choose<true, false>},
    {"selectattr", choose<true, true>},
    {"slice", slice_filter},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
};

}  // namespace

std::span<const NamedFilter> list_filters() { return kFilters; }

}  // namespace strata::text
