#include "strata/text/jinja/operators.h"

#include <algorithm>
#include <bit>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/code_points.h"
#include "strata/text/jinja/percent_format.h"
#include "strata/text/string_search.h"

namespace strata::text {
namespace {

std::string_view symbol(Arithmetic op) {
  switch (op) {
    case Arithmetic::kAdd:
      return "+";
    case Arithmetic::kSubtract:
      return "-";
    case Arithmetic::kMultiply:
      return "*";
    case Arithmetic::kDivide:
      return "/";
    case Arithmetic::kFloorDivide:
      return "//";
    case Arithmetic::kModulo:
      return "%";
    case Arithmetic::kPower:
      return "**";
  }
  return "?";
}

bool is_sequence(const Value& value) {
  return value.is_list() &&
         (value.as_list().kind() == ListKind::kList || value.as_list().kind() == ListKind::kTuple);
}

bool equal_lists(const List& a, const List& b, TemplateBudget& budget) {
  if (a.kind() != b.kind() || a.items().size() != b.items().size()) return false;
  for (size_t i = 0; i < a.items().size(); ++i) {
    if (!equal(a.items()[i], b.items()[i], budget)) return false;
  }
  return true;
}

bool equal_maps(const Map& a, const Map& b, TemplateBudget& budget) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a.entries()) {
    const Value* other = b.find(key);
    if (other == nullptr || !equal(value, *other, budget)) return false;
  }
  return true;
}

// `times` copies of the items or the text.
Value repeat(const Value& value, int64_t times, TemplateBudget& budget) {
  times = std::max<int64_t>(times, 0);
  if (value.is_string()) {
    MarkedTextBuilder out(budget);
    // An empty text costs nothing, however often it is asked for.
    if (value.as_text().empty()) times = 0;
    budget.foresee(static_cast<uint64_t>(times), value.as_text().size());
    out.reserve(static_cast<uint64_t>(times) * value.as_text().size());
    for (int64_t i = 0; i < times; ++i) out.add(value.as_text());
    return Value::string(out.take());
  }
  const Value::Items& items = value.as_list().items();
  if (items.empty()) times = 0;
  budget.foresee(static_cast<uint64_t>(times), items.size() * sizeof(Value));
  ListBuilder out(budget);
  out.reserve(static_cast<uint64_t>(times) * items.size());
  for (int64_t i = 0; i < times; ++i) out.add(items);
  return out.take(value.as_list().kind());
}

[[noreturn]] void unsupported(Arithmetic op, const Value& a, const Value& b) {
  throw Error(ErrorCode::kInvalidArgument,
              format("{} does not work between {} and {}", symbol(op), type_name(a), type_name(b)));
}

void refuse_undefined(const Value& value) {
  if (value.is_undefined()) throw Error(ErrorCode::kInvalidArgument, value.reason());
}

}  // namespace

bool truthy(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kUndefined:
    case Value::Kind::kNull:
      return false;
    case Value::Kind::kBool:
      return value.as_bool();
    case Value::Kind::kInteger:
      return value.as_integer() != 0;
    case Value::Kind::kNumber:
      return value.as_number() != 0;
    case Value::Kind::kString:
      return !value.as_text().empty();
    case Value::Kind::kList:
      return value.as_list().kind() == ListKind::kGenerator || !value.as_list().items().empty();
    case Value::Kind::kMap:
      return value.as_map().size() != 0;
    case Value::Kind::kObject:
      return true;
  }
  return true;
}

bool equal(const Value& a, const Value& b, TemplateBudget& budget) {
  budget.step();
  if (is_numeric(a) && is_numeric(b)) {
    return compare_numbers(a, b) == std::partial_ordering::equivalent;
  }
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Value::Kind::kUndefined:
    case Value::Kind::kNull:
      return true;
    case Value::Kind::kString:
      if (a.as_text().size() != b.as_text().size()) return false;
      budget.scan(a.as_text().size());
      return a.as_string() == b.as_string();
    case Value::Kind::kList:
      return equal_lists(a.as_list(), b.as_list(), budget);
    case Value::Kind::kMap:
      return equal_maps(a.as_map(), b.as_map(), budget);
    case Value::Kind::kObject:
      return a.as_object() == b.as_object();
    default:
      return false;
  }
}

std::partial_ordering compare(const Value& a, const Value& b, TemplateBudget& budget) {
  budget.step();
  if (is_numeric(a) && is_numeric(b)) return compare_numbers(a, b);
  if (a.is_string() && b.is_string()) {
    budget.scan(std::min(a.as_text().size(), b.as_text().size()));
    return a.as_string() <=> b.as_string();
  }
  if (is_sequence(a) && is_sequence(b) && a.as_list().kind() == b.as_list().kind()) {
    const Value::Items& left = a.as_list().items();
    const Value::Items& right = b.as_list().items();
    for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
      if (!equal(left[i], right[i], budget)) return compare(left[i], right[i], budget);
    }
    return left.size() <=> right.size();
  }
  refuse_undefined(a);
  refuse_undefined(b);
  throw Error(ErrorCode::kInvalidArgument,
              format("{} and {} have no order", type_name(a), type_name(b)));
}

bool less(const Value& a, const Value& b, TemplateBudget& budget) {
  return compare(a, b, budget) == std::partial_ordering::less;
}

bool contains(const Value& container, const Value& item, TemplateBudget& budget) {
  budget.step();
  switch (container.kind()) {
    case Value::Kind::kString:
      if (!item.is_string()) {
        refuse_undefined(item);
        throw Error(ErrorCode::kInvalidArgument,
                    format("only a string can be in a string, not a {}", type_name(item)));
      }
      budget.scan(container.as_text().size());
      return find_first(container.as_string(), item.as_string()) != std::string_view::npos;
    case Value::Kind::kMap:
      if (item.is_list() || item.is_map()) {
        throw Error(ErrorCode::kInvalidArgument,
                    format("a {} cannot be a key of a map", type_name(item)));
      }
      return container.as_map().find(item) != nullptr;
    case Value::Kind::kList:
      return std::any_of(container.as_list().items().begin(), container.as_list().items().end(),
                         [&](const Value& other) { return equal(item, other, budget); });
    case Value::Kind::kUndefined:
      return false;
    default:
      throw Error(ErrorCode::kInvalidArgument,
                  format("nothing can be in a {}", type_name(container)));
  }
}

Value apply(Arithmetic op, const Value& a, const Value& b, TemplateBudget& budget) {
  if (is_numeric(a) && is_numeric(b)) return calculate(op, a, b);
  refuse_undefined(a);
  if (op == Arithmetic::kModulo && a.is_string()) return format_percent(a.as_text(), b, budget);
  refuse_undefined(b);
  if (op == Arithmetic::kAdd) {
    if (a.is_string() && b.is_string()) {
      MarkedTextBuilder out(budget);
      out.reserve(a.as_text().size() + b.as_text().size());
      out.add(a.as_text());
      out.add(b.as_text());
      return Value::string(out.take());
    }
    if (is_sequence(a) && is_sequence(b) && a.as_list().kind() == b.as_list().kind()) {
      ListBuilder out(budget);
      out.reserve(a.as_list().items().size() + b.as_list().items().size());
      out.add(a.as_list().items());
      out.add(b.as_list().items());
      return out.take(a.as_list().kind());
    }
  }
  if (op == Arithmetic::kMultiply) {
    const auto repeatable = [](const Value& v) { return v.is_string() || is_sequence(v); };
    if (const auto times = to_integer(b); times && repeatable(a)) return repeat(a, *times, budget);
    if (const auto times = to_integer(a); times && repeatable(b)) return repeat(b, *times, budget);
  }
  unsupported(op, a, b);
}

int64_t character_count(const MarkedText& text, TemplateBudget& budget) {
  if (text.ascii()) return static_cast<int64_t>(text.size());
  budget.scan(text.size());
  return static_cast<int64_t>(count_code_points(text.bytes()));
}

int64_t length_of(const Value& value, TemplateBudget& budget) {
  switch (value.kind()) {
    case Value::Kind::kUndefined:
      return 0;
    case Value::Kind::kString:
      return character_count(value.as_text(), budget);
    case Value::Kind::kMap:
      return static_cast<int64_t>(value.as_map().size());
    case Value::Kind::kList:
      if (value.as_list().kind() == ListKind::kGenerator) break;
      return static_cast<int64_t>(value.as_list().items().size());
    default:
      break;
  }
  throw Error(ErrorCode::kInvalidArgument, format("a {} has no length", type_name(value)));
}

Value iterated(const Value& value, TemplateBudget& budget) {
  ListBuilder out(budget);
  switch (value.kind()) {
    case Value::Kind::kList:
      return value;
    case Value::Kind::kUndefined:
      break;
    case Value::Kind::kMap:
      for (const auto& entry : value.as_map().entries()) out.add(entry.first);
      break;
    case Value::Kind::kString: {
      const MarkedText& text = value.as_text();
      for (size_t at = 0; at < text.size();) {
        const size_t next = at + code_point_at(text.bytes(), at).length;
        out.add(make_slice(text, at, next, budget));
        at = next;
      }
      break;
    }
    default:
      throw Error(ErrorCode::kInvalidArgument,
                  format("a {} cannot be iterated over", type_name(value)));
  }
  return out.take();
}

Value make_list(Value::Items items, TemplateBudget& budget, ListKind kind) {
  Charge charge(budget, sizeof(List) + items.size() * sizeof(Value));
  return Value::of(std::make_shared<const List>(std::move(items), kind, std::move(charge)));
}

Value make_map(Value::Entries entries, TemplateBudget& budget) {
  Charge charge(budget, sizeof(Map) + entries.size() * (2 * sizeof(Value) + sizeof(uint32_t)));
  // Sorting compares the keys, in whose place the same long text may stand again and again.
  uint64_t key_bytes = 0;
  for (const auto& entry : entries) {
    if (entry.first.is_string()) key_bytes += entry.first.as_text().size();
  }
  budget.scan(key_bytes * static_cast<uint64_t>(std::bit_width(entries.size())));
  return Value::of(std::make_shared<const Map>(std::move(entries), std::move(charge)));
}

Value make_slice(const MarkedText& text, size_t begin, size_t end, TemplateBudget& budget) {
  if (begin == end) {
    // Splitting makes many of these; they share one.
    static const Value empty = Value::scaffold("");
    return empty;
  }
  MarkedTextBuilder out(budget);
  out.add(text, begin, end);
  return Value::string(out.take());
}

}  // namespace strata::text
