#include <algorithm>
#include <ctime>
#include <iterator>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/jinja/arguments.h"
#include "strata/text/jinja/builtins.h"
#include "strata/text/jinja/operators.h"
#include "strata/text/jinja/run.h"
#include "strata/text/jinja/value_writer.h"

namespace strata::text {
namespace {

// A map, a list of pairs, and named values, as dict() takes them.
Value::Entries entries_of(TemplateRun& run, std::string_view callee,
                          const CallArguments& arguments) {
  if (arguments.positional.size() > 1) {
    throw Error(ErrorCode::kInvalidArgument, format("{} takes at most one value", callee));
  }
  Value::Entries entries;
  // What it holds until make_map has taken it over.
  Charge charge(run.budget());
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (source.is_map()) {
      run.budget().foresee(source.as_map().size(), 2 * sizeof(Value));
      entries = source.as_map().entries();
    } else {
      const Value pairs = iterated(source, run.budget());
      run.budget().step(pairs.as_list().items().size());
      for (const Value& pair : pairs.as_list().items()) {
        const Value parts = iterated(pair, run.budget());
        const Value::Items& items = parts.as_list().items();
        if (items.size() != 2) {
          throw Error(ErrorCode::kInvalidArgument, format("{} needs pairs", callee));
        }
        charge.grow(2 * sizeof(Value));
        entries.emplace_back(items[0], items[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) {
    entries.emplace_back(Value::scaffold(name), value);
  }
  return entries;
}

Value dict(TemplateRun& run, const CallArguments& arguments) {
  return make_map(entries_of(run, "dict", arguments), run.budget());
}

Value make_namespace(TemplateRun& run, const CallArguments& arguments) {
  const Value map = dict(run, arguments);
  auto& object = run.make<NamespaceObject>();
  for (const auto& [key, value] : map.as_map().entries()) {
    if (!key.is_string()) {
      throw Error(ErrorCode::kInvalidArgument, "the attributes of a namespace have string names");
    }
    run.budget().make(sizeof(Value) + key.as_text().size());
    object.attributes.emplace_back(key.as_string(), value);
  }
  return Value::object(&object);
}

Value range(TemplateRun& run, const CallArguments& arguments) {
  const BoundArguments args("range", arguments, {"start", "stop", "step"}, 2);
  int64_t start = 0;
  int64_t stop = args.integer(0, 0);
  if (args.has(1)) {
    start = stop;
    stop = args.integer(1, 0);
  }
  const int64_t step = args.integer(2, 1);
  if (step == 0) throw Error(ErrorCode::kInvalidArgument, "range: the step is not 0");
  // As in Jinja2's sandbox.
  constexpr uint64_t kMaxItems = 100'000;
  const bool empty = step > 0 ? start >= stop : start <= stop;
  // Unsigned: the distance may not fit in 63 bits.
  const uint64_t distance = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                     : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : ~static_cast<uint64_t>(step) + 1;
  const uint64_t n = empty ? 0 : (distance - 1) / stride + 1;
  if (n > kMaxItems) {
    throw Error(ErrorCode::kInvalidArgument, format("range: more than {} items", kMaxItems));
  }
  ListBuilder items(run.budget());
  items.reserve(n);
  for (uint64_t i = 0; i < n; ++i) {
    // Unsigned: on the way to a number in range the product may leave it, and wraps back.
    const uint64_t item = static_cast<uint64_t>(start) + i * static_cast<uint64_t>(step);
    items.add(Value::integer(static_cast<int64_t>(item)));
  }
  return items.take(ListKind::kRange);
}

Value raise_exception(TemplateRun& run, const CallArguments& arguments) {
  const BoundArguments args("raise_exception", arguments, {"message"});
  constexpr int64_t kMostCharacters = 1000;
  const Value text = to_text(args[0], run.budget());
  const Value message =
      slice(text, {Value(), Value::integer(kMostCharacters), Value()}, run.budget());
  throw Error(ErrorCode::kInvalidArgument, std::string(message.as_string()));
}

Value strftime_now(TemplateRun& run, const CallArguments& arguments) {
  const BoundArguments args("strftime_now", arguments, {"format"});
  const MarkedText& pattern = args.text(0);
  constexpr size_t kMaxPattern = 256;
  if (pattern.size() > kMaxPattern || pattern.bytes().find('\0') != std::string_view::npos) {
    throw Error(ErrorCode::kInvalidArgument, "strftime_now: not a usable format");
  }
  std::tm now{};
  if (run.options().now) {
    now = *run.options().now;
  } else {
    const std::time_t seconds = std::time(nullptr);
    localtime_r(&seconds, &now);
  }
  // The space tells an empty result from one that does not fit.
  const std::string spaced = std::string(pattern.bytes()) + " ";
  std::string text(32 * kMaxPattern, '\0');
  text.resize(std::strftime(text.data(), text.size(), spaced.c_str(), &now));
  if (text.empty()) throw Error(ErrorCode::kInvalidArgument, "strftime_now: the text is too long");
  text.pop_back();
  run.budget().make(text.size());
  const bool content = !pattern.content().empty();
  return content ? Value::content(std::move(text)) : Value::scaffold(std::move(text));
}

constexpr NamedFunction kFunctions[] = {
    {"dict", dict},   {"namespace", make_namespace},  {"raise_exception", raise_exception},
    {"range", range}, {"strftime_now", strftime_now},
};

}  // namespace

TemplateFunction find_function(std::string_view name) {
  const auto found = std::lower_bound(
      std::begin(kFunctions), std::end(kFunctions), name,
      [](const NamedFunction& f, std::string_view wanted) { return f.name < wanted; });
  return found != std::end(kFunctions) && found->name == name ? found->function : nullptr;
}

}  // namespace strata::text
