#include "strata/text/value.h"

#include <algorithm>
#include <compare>
#include <numeric>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/text/jinja/numbers.h"

namespace strata::text {
namespace {

int checked_depth(int depth) {
  if (depth > Value::kMaxDepth) {
    throw Error(
        ErrorCode::kInvalidArgument,
        format("nested too deep: more than {} lists and maps inside each other", Value::kMaxDepth));
  }
  return depth;
}

// Kinds of key in the order in which they sort; numbers of all types are one kind.
int key_rank(const Value& key) {
  switch (key.kind()) {
    case Value::Kind::kNull:
      return 0;
    case Value::Kind::kBool:
    case Value::Kind::kInteger:
    case Value::Kind::kNumber:
      return 1;
    case Value::Kind::kString:
      return 2;
    default:
      return -1;
  }
}

std::weak_ordering compare_keys(const Value& a, const Value& b) {
  const int rank = key_rank(a);
  if (rank != key_rank(b)) return rank <=> key_rank(b);
  if (rank == 0) return std::weak_ordering::equivalent;
  if (rank == 2) return a.as_string() <=> b.as_string();
  const std::partial_ordering order = compare_numbers(a, b);
  if (order == std::partial_ordering::unordered) {
    // NaN needs a place for the sort: behind all other numbers, like itself.
    return is_nan(a) <=> is_nan(b);
  }
  if (order == std::partial_ordering::less) return std::weak_ordering::less;
  if (order == std::partial_ordering::greater) return std::weak_ordering::greater;
  return std::weak_ordering::equivalent;
}

}  // namespace

Value Value::undefined(std::string reason) {
  Value v;
  v.data_ = Undefined{std::make_shared<const std::string>(std::move(reason))};
  return v;
}

Value Value::boolean(bool value) {
  Value v;
  v.data_ = value;
  return v;
}

Value Value::integer(int64_t value) {
  Value v;
  v.data_ = value;
  return v;
}

Value Value::number(double value) {
  Value v;
  v.data_ = value;
  return v;
}

Value Value::content(std::string text) {
  return string(MarkedText(std::move(text), Origin::kContent));
}

Value Value::scaffold(std::string text) {
  return string(MarkedText(std::move(text), Origin::kScaffold));
}

Value Value::string(MarkedText text) {
  Value v;
  v.data_ = std::make_shared<const MarkedText>(std::move(text));
  return v;
}

Value Value::list(Items items) {
  return of(std::make_shared<const List>(std::move(items), ListKind::kList));
}

Value Value::map(Members members) {
  Entries entries;
  entries.reserve(members.size());
  for (auto& [key, value] : members) {
    entries.emplace_back(content(std::move(key)), std::move(value));
  }
  return map(std::move(entries));
}

Value Value::map(Entries entries) {
  Value v;
  v.data_ = std::make_shared<const Map>(std::move(entries));
  return v;
}

Value Value::of(std::shared_ptr<const List> list) {
  STRATA_CHECK(list != nullptr);
  Value v;
  v.data_ = std::move(list);
  return v;
}

Value Value::of(std::shared_ptr<const Map> map) {
  STRATA_CHECK(map != nullptr);
  Value v;
  v.data_ = std::move(map);
  return v;
}

Value Value::object(TemplateObject* object) {
  STRATA_CHECK(object != nullptr);
  Value v;
  v.data_ = object;
  return v;
}

bool Value::as_bool() const {
  STRATA_CHECK(is(Kind::kBool));
  return *std::get_if<bool>(&data_);
}

int64_t Value::as_integer() const {
  STRATA_CHECK(is(Kind::kInteger));
  return *std::get_if<int64_t>(&data_);
}

double Value::as_number() const {
  STRATA_CHECK(is(Kind::kNumber));
  return *std::get_if<double>(&data_);
}

const MarkedText& Value::as_text() const {
  STRATA_CHECK(is(Kind::kString));
  return **std::get_if<std::shared_ptr<const MarkedText>>(&data_);
}

const List& Value::as_list() const {
  STRATA_CHECK(is(Kind::kList));
  return **std::get_if<std::shared_ptr<const List>>(&data_);
}

const Map& Value::as_map() const {
  STRATA_CHECK(is(Kind::kMap));
  return **std::get_if<std::shared_ptr<const Map>>(&data_);
}

TemplateObject* Value::as_object() const {
  STRATA_CHECK(is(Kind::kObject));
  return *std::get_if<TemplateObject*>(&data_);
}

const std::string& Value::reason() const {
  STRATA_CHECK(is(Kind::kUndefined));
  return *std::get_if<Undefined>(&data_)->reason;
}

int Value::depth() const {
  if (is_list()) return as_list().depth();
  if (is_map()) return as_map().depth();
  return 0;
}

List::List(Value::Items items, ListKind kind, Charge charge)
    : items_(std::move(items)), kind_(kind), depth_(1), charge_(std::move(charge)) {
  for (const Value& item : items_) depth_ = std::max(depth_, 1 + item.depth());
  checked_depth(depth_);
}

Map::Map(Value::Entries entries, Charge charge)
    : entries_(std::move(entries)), charge_(std::move(charge)) {
  for (const auto& [key, value] : entries_) {
    if (key_rank(key) < 0) {
      throw Error(ErrorCode::kInvalidArgument,
                  format("a {} cannot be a key of a map", type_name(key)));
    }
    depth_ = std::max(depth_, 1 + value.depth());
  }
  checked_depth(depth_);
  by_key_.resize(entries_.size());
  std::iota(by_key_.begin(), by_key_.end(), 0u);
  std::stable_sort(by_key_.begin(), by_key_.end(), [this](uint32_t a, uint32_t b) {
    return compare_keys(entries_[a].first, entries_[b].first) < 0;
  });
  bool repeated = false;
  for (size_t i = 1; i < by_key_.size() && !repeated; ++i) {
    repeated = compare_keys(entries_[by_key_[i - 1]].first, entries_[by_key_[i]].first) == 0;
  }
  if (!repeated) return;
  // Rare: rebuild without the repeated ones.
  Value::Entries kept;
  std::vector<int64_t> place(entries_.size(), -1);  // by first occurrence: index in kept
  std::vector<uint32_t> first_of(entries_.size());
  for (size_t i = 0; i < by_key_.size(); ++i) {
    const bool same =
        i > 0 && compare_keys(entries_[by_key_[i - 1]].first, entries_[by_key_[i]].first) == 0;
    first_of[by_key_[i]] = same ? first_of[by_key_[i - 1]] : by_key_[i];
  }
  for (size_t i = 0; i < entries_.size(); ++i) {
    const uint32_t first = first_of[i];
    if (first == i) {
      place[i] = static_cast<int64_t>(kept.size());
      kept.push_back(std::move(entries_[i]));
    } else {
      kept[static_cast<size_t>(place[first])].second = std::move(entries_[i].second);
    }
  }
  *this = Map(std::move(kept), std::move(charge_));
}

const Value* Map::find(const Value& key) const {
  if (key_rank(key) < 0) return nullptr;
  const auto found = std::partition_point(by_key_.begin(), by_key_.end(), [&](uint32_t i) {
    return compare_keys(entries_[i].first, key) < 0;
  });
  if (found == by_key_.end()) return nullptr;
  const auto& [candidate, value] = entries_[*found];
  return compare_keys(candidate, key) == 0 ? &value : nullptr;
}

const Value* Map::find(std::string_view key) const {
  const auto found = std::partition_point(by_key_.begin(), by_key_.end(), [&](uint32_t i) {
    const Value& candidate = entries_[i].first;
    return !candidate.is_string() || candidate.as_string() < key;
  });
  if (found == by_key_.end()) return nullptr;
  const auto& [candidate, value] = entries_[*found];
  return candidate.as_string() == key ? &value : nullptr;
}

}  // namespace strata::text
