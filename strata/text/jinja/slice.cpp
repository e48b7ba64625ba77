#include <algorithm>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/code_points.h"
#include "strata/text/jinja/operators.h"

namespace strata::text {
namespace {

struct Span {
  int64_t start;
  int64_t step;
  int64_t count;  // items taken
};

std::optional<int64_t> bound(const Value& value) {
  if (value.is_null()) return std::nullopt;
  const std::optional<int64_t> integer = to_integer(value);
  if (!integer) {
    throw Error(ErrorCode::kInvalidArgument, "the bounds of a slice are integers");
  }
  return integer;
}

// Counts from the end if negative, then into [low, high].
int64_t place(int64_t index, int64_t length, int64_t low, int64_t high) {
  if (index < 0) index += length;  // cannot overflow: length is not negative
  return std::clamp(index, low, high);
}

Span resolve(const SliceBounds& bounds, int64_t length) {
  const int64_t step = bound(bounds.step).value_or(1);
  if (step == 0) throw Error(ErrorCode::kInvalidArgument, "the step of a slice is not 0");
  const std::optional<int64_t> start = bound(bounds.start);
  const std::optional<int64_t> stop = bound(bounds.stop);
  if (step > 0) {
    const int64_t from = place(start.value_or(0), length, 0, length);
    const int64_t to = stop ? place(*stop, length, 0, length) : length;
    return {from, step, to > from ? (to - from - 1) / step + 1 : 0};
  }
  const int64_t from = start ? place(*start, length, -1, length - 1) : length - 1;
  const int64_t to = stop ? place(*stop, length, -1, length - 1) : -1;
  // Divided by the step itself: its negation would overflow for the smallest one.
  return {from, step, to < from ? 1 - (from - to - 1) / step : 0};
}

Value slice_text(const MarkedText& text, const SliceBounds& bounds, TemplateBudget& budget) {
  const std::string_view bytes = text.bytes();
  const int64_t length = character_count(text, budget);
  const Span span = resolve(bounds, length);
  if (span.count == 0) return Value::scaffold("");
  if (span.step == 1) {
    const auto start = static_cast<size_t>(span.start);
    const auto count = static_cast<size_t>(span.count);
    if (text.ascii()) return make_slice(text, start, start + count, budget);
    const size_t begin = code_point_offset(bytes, start);
    return make_slice(text, begin, code_point_offset(bytes, count, begin), budget);
  }
  std::vector<size_t> offsets;  // of each character; a table makes any step linear
  const Charge charge(budget, static_cast<uint64_t>(length) * sizeof(size_t));
  offsets.reserve(static_cast<size_t>(length) + 1);
  for (size_t at = 0; at < bytes.size(); at += code_point_at(bytes, at).length) {
    offsets.push_back(at);
  }
  offsets.push_back(bytes.size());
  MarkedTextBuilder out(budget);
  for (int64_t i = 0; i < span.count; ++i) {
    const auto at = static_cast<size_t>(span.start + i * span.step);
    out.add(text, offsets[at], offsets[at + 1]);
  }
  return Value::string(out.take());
}

}  // namespace

Value slice(const Value& value, const SliceBounds& bounds, TemplateBudget& budget) {
  if (value.is_string()) return slice_text(value.as_text(), bounds, budget);
  if (value.is_undefined()) throw Error(ErrorCode::kInvalidArgument, value.reason());
  const ListKind kind = value.is_list() ? value.as_list().kind() : ListKind::kGenerator;
  if (kind != ListKind::kList && kind != ListKind::kTuple && kind != ListKind::kRange) {
    throw Error(ErrorCode::kInvalidArgument, format("a {} cannot be sliced", type_name(value)));
  }
  const Value::Items& items = value.as_list().items();
  const Span span = resolve(bounds, static_cast<int64_t>(items.size()));
  ListBuilder out(budget);
  out.reserve(static_cast<uint64_t>(span.count));
  for (int64_t i = 0; i < span.count; ++i) {
    out.add(items[static_cast<size_t>(span.start + i * span.step)]);
  }
  return out.take(kind);
}

}  // namespace strata::text
