#include "strata/gguf/metadata.h"

#include <limits>
#include <type_traits>
#include <utility>

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/gguf/escape.h"

namespace strata::gguf {
namespace {

using Scalar = std::variant<uint64_t, int64_t, double>;

std::optional<uint64_t> to_u64(const Scalar& scalar) {
  if (const auto* u = std::get_if<uint64_t>(&scalar)) return *u;
  const auto* i = std::get_if<int64_t>(&scalar);
  if (i == nullptr || *i < 0) return {};
  return static_cast<uint64_t>(*i);
}

std::optional<int64_t> to_i64(const Scalar& scalar) {
  if (const auto* i = std::get_if<int64_t>(&scalar)) return *i;
  const auto* u = std::get_if<uint64_t>(&scalar);
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (u == nullptr || *u > kMax) return {};
  return static_cast<int64_t>(*u);
}

std::optional<double> to_f64(const Scalar& scalar) {
  return std::visit([](auto value) { return static_cast<double>(value); }, scalar);
}

std::optional<bool> to_bool(const Scalar& scalar) {
  const auto value = to_u64(scalar);
  if (!value || *value > 1) return {};
  return *value == 1;
}

// Nothing for strings and arrays. A bool is no number, but a number may be a bool.
std::optional<Scalar> scalar_of(const Value& value, bool wants_bool) {
  return std::visit(
      [&](const auto& v) -> std::optional<Scalar> {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool>) {
          if (!wants_bool) return {};
          return Scalar(uint64_t{v});
        } else if constexpr (std::is_floating_point_v<T>) {
          return Scalar(double{v});
        } else if constexpr (std::is_unsigned_v<T>) {
          return Scalar(uint64_t{v});
        } else if constexpr (std::is_signed_v<T>) {
          return Scalar(int64_t{v});
        } else {
          return {};
        }
      },
      value);
}

std::string value_text(const Scalar& scalar) {
  return std::visit([](auto value) { return format("{}", value); }, scalar);
}

}  // namespace

Metadata::Metadata(std::string file, std::vector<KeyValue> entries)
    : file_(std::move(file)), entries_(std::move(entries)) {
  index_.reserve(entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].key, i);
}

const Value* Metadata::find(std::string_view key) const {
  const auto it = index_.find(key);
  return it == index_.end() ? nullptr : &entries_[it->second].value;
}

bool Metadata::is_array(std::string_view key) const {
  const Value* value = find(key);
  return value != nullptr && std::holds_alternative<Array>(*value);
}

void Metadata::fail_missing(std::string_view key) const {
  throw Error(ErrorCode::kCorruptFile, format("{}: the key {} is missing", file_, escaped(key)));
}

void Metadata::fail_type(std::string_view key, const Value& value, std::string_view wanted) const {
  throw Error(ErrorCode::kCorruptFile, format("{}: the key {} is of type {}, wanted: {}", file_,
                                              escaped(key), type_text(value), wanted));
}

template <class T>
std::optional<T> Metadata::find_scalar(std::string_view key, std::string_view wanted,
                                       std::optional<T> (*convert)(const Scalar&)) const {
  const Value* value = find(key);
  if (value == nullptr) return {};
  const auto scalar = scalar_of(*value, std::is_same_v<T, bool>);
  if (!scalar) fail_type(key, *value, wanted);
  auto result = convert(*scalar);
  if (!result) {
    throw Error(ErrorCode::kCorruptFile,
                format("{}: the key {} is the {} {}, wanted: {}", file_, escaped(key),
                       type_text(*value), value_text(*scalar), wanted));
  }
  return result;
}

const Array* Metadata::find_array(std::string_view key, std::string_view wanted) const {
  const Value* value = find(key);
  if (value == nullptr) return nullptr;
  const auto* array = std::get_if<Array>(value);
  if (array == nullptr) fail_type(key, *value, wanted);
  return array;
}

template <class T>
std::optional<std::vector<T>> Metadata::find_scalars(
    std::string_view key, std::string_view wanted,
    std::optional<T> (*convert)(const Scalar&)) const {
  const Array* array = find_array(key, wanted);
  if (array == nullptr) return {};
  const bool is_bool = array->element == ValueType::kBool;
  if (scalar_bytes(array->element) == 0 || (is_bool && !std::is_same_v<T, bool>)) {
    // An empty array carries no elements that could be of a wrong type.
    if (array->size == 0) return std::vector<T>();
    fail_type(key, *find(key), wanted);
  }
  std::vector<T> result;
  result.reserve(array->size);
  for (uint64_t i = 0; i < array->size; ++i) {
    const Scalar scalar = scalar_at(*array, i);
    const auto converted = convert(scalar);
    if (!converted) {
      throw Error(ErrorCode::kCorruptFile,
                  format("{}: the key {}: element {} is the {} {}, wanted: {}", file_, escaped(key),
                         i, name(array->element), value_text(scalar), wanted));
    }
    result.push_back(*converted);
  }
  return result;
}

std::optional<uint64_t> Metadata::find_u64(std::string_view key) const {
  return find_scalar<uint64_t>(key, "an integer of 0 or more", to_u64);
}

std::optional<int64_t> Metadata::find_i64(std::string_view key) const {
  return find_scalar<int64_t>(key, "a signed integer", to_i64);
}

std::optional<double> Metadata::find_f64(std::string_view key) const {
  return find_scalar<double>(key, "a number", to_f64);
}

std::optional<bool> Metadata::find_bool(std::string_view key) const {
  return find_scalar<bool>(key, "a bool", to_bool);
}

std::optional<std::string_view> Metadata::find_string(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return {};
  const auto* text = std::get_if<std::string_view>(value);
  if (text == nullptr) fail_type(key, *value, "a string");
  return *text;
}

std::optional<std::vector<uint64_t>> Metadata::find_u64s(std::string_view key) const {
  return find_scalars<uint64_t>(key, "an array of integers of 0 or more", to_u64);
}

std::optional<std::vector<int64_t>> Metadata::find_i64s(std::string_view key) const {
  return find_scalars<int64_t>(key, "an array of signed integers", to_i64);
}

std::optional<std::vector<bool>> Metadata::find_bools(std::string_view key) const {
  return find_scalars<bool>(key, "an array of bools", to_bool);
}

std::optional<std::span<const std::string_view>> Metadata::find_strings(
    std::string_view key) const {
  const Array* array = find_array(key, "an array of strings");
  if (array == nullptr) return {};
  if (array->element != ValueType::kString && array->size != 0) {
    fail_type(key, *find(key), "an array of strings");
  }
  return std::span<const std::string_view>(array->strings);
}

}  // namespace strata::gguf
