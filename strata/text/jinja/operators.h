#pragma once

#include <compare>
#include <cstdint>

#include "strata/text/jinja/budget.h"
#include "strata/text/jinja/numbers.h"
#include "strata/text/value.h"

namespace strata::text {

// What Python's operators do with template values. Errors: kInvalidArgument for types that do not
// fit together, and when the budget is used up.

bool truthy(const Value& value);
bool equal(const Value& a, const Value& b, TemplateBudget& budget);
// Unordered only for NaN. Strings compare by code points, lists item by item.
std::partial_ordering compare(const Value& a, const Value& b, TemplateBudget& budget);
bool less(const Value& a, const Value& b, TemplateBudget& budget);
// item in container.
bool contains(const Value& container, const Value& item, TemplateBudget& budget);
// a + b, also for strings and lists; a % b also as string formatting.
Value apply(Arithmetic op, const Value& a, const Value& b, TemplateBudget& budget);

// len(value). Errors: kInvalidArgument if it has none.
int64_t length_of(const Value& value, TemplateBudget& budget);
int64_t character_count(const MarkedText& text, TemplateBudget& budget);
// What a loop over the value yields, as a value of kind list: a map's keys, a string's characters,
// nothing for undefined. Errors: kInvalidArgument if it cannot be iterated over.
Value iterated(const Value& value, TemplateBudget& budget);

// A list in the making: each item is paid for before it is kept.
class ListBuilder {
 public:
  explicit ListBuilder(TemplateBudget& budget) : budget_(budget), charge_(budget, sizeof(List)) {}
  void add(Value item) {
    charge_.grow(sizeof(Value));
    items_.push_back(std::move(item));
  }
  void add(const Value::Items& items) {
    charge_.grow(items.size() * sizeof(Value));
    items_.insert(items_.end(), items.begin(), items.end());
  }
  // Room for this many items in all. Errors: as the budget, before anything is kept.
  void reserve(uint64_t n) {
    budget_.foresee(n, sizeof(Value));
    items_.reserve(n);
  }
  size_t size() const { return items_.size(); }
  Value::Items& items() { return items_; }  // to be put in another order
  // Once.
  Value take(ListKind kind = ListKind::kList) {
    return Value::of(std::make_shared<const List>(std::move(items_), kind, std::move(charge_)));
  }

 private:
  TemplateBudget& budget_;
  Charge charge_;
  Value::Items items_;
};

// New lists pay for their items here.
Value make_list(Value::Items items, TemplateBudget& budget, ListKind kind = ListKind::kList);
Value make_map(Value::Entries entries, TemplateBudget& budget);
// [begin, end) in bytes.
Value make_slice(const MarkedText& text, size_t begin, size_t end, TemplateBudget& budget);

// value[start:stop:step]; parts that are not given are null.
struct SliceBounds {
  Value start;
  Value stop;
  Value step;
};
Value slice(const Value& value, const SliceBounds& bounds, TemplateBudget& budget);

}  // namespace strata::text
