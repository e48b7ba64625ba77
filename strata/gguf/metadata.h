#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "strata/gguf/value.h"

namespace strata::gguf {

struct KeyValue {
  std::string_view key;
  Value value;
};

// The keys of a file in file order. Immutable; any number of threads may read.
//
// get_X(key) requires the key; find_X(key) has nothing to return if the key is absent. Both accept
// every integer width (and, for f64, f32 and integers), since converters differ, and both judge the
// value: what does not fit is an error, not a surprise.
// Errors: kCorruptFile naming file, key, the type (or value) found and the type wanted; get_X also
// if the key is absent. Array forms want an array: a scalar is not taken for one.
class Metadata {
 public:
  Metadata() = default;
  // file: what errors call the source. Keys are unique.
  Metadata(std::string file, std::vector<KeyValue> entries);

  const std::string& file() const { return file_; }
  std::span<const KeyValue> entries() const { return entries_; }
  const Value* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  bool is_array(std::string_view key) const;

  std::optional<uint64_t> find_u64(std::string_view key) const;
  std::optional<int64_t> find_i64(std::string_view key) const;
  std::optional<double> find_f64(std::string_view key) const;
  std::optional<bool> find_bool(std::string_view key) const;  // also the integers 0 and 1
  std::optional<std::string_view> find_string(std::string_view key) const;
  std::optional<std::vector<uint64_t>> find_u64s(std::string_view key) const;
  std::optional<std::vector<int64_t>> find_i64s(std::string_view key) const;
  std::optional<std::vector<bool>> find_bools(std::string_view key) const;
  std::optional<std::span<const std::string_view>> find_strings(std::string_view key) const;

  uint64_t get_u64(std::string_view key) const { return require(find_u64(key), key); }
  int64_t get_i64(std::string_view key) const { return require(find_i64(key), key); }
  double get_f64(std::string_view key) const { return require(find_f64(key), key); }
  std::string_view get_string(std::string_view key) const { return require(find_string(key), key); }
  std::vector<uint64_t> get_u64s(std::string_view key) const {
    return require(find_u64s(key), key);
  }
  std::vector<int64_t> get_i64s(std::string_view key) const { return require(find_i64s(key), key); }
  std::span<const std::string_view> get_strings(std::string_view key) const {
    return require(find_strings(key), key);
  }

 private:
  template <class T>
  T require(std::optional<T> value, std::string_view key) const {
    if (!value) fail_missing(key);
    return *std::move(value);
  }
  [[noreturn]] void fail_missing(std::string_view key) const;
  [[noreturn]] void fail_type(std::string_view key, const Value& value,
                              std::string_view wanted) const;
  const Array* find_array(std::string_view key, std::string_view wanted) const;

  using Scalar = std::variant<uint64_t, int64_t, double>;
  template <class T>
  std::optional<T> find_scalar(std::string_view key, std::string_view wanted,
                               std::optional<T> (*convert)(const Scalar&)) const;
  template <class T>
  std::optional<std::vector<T>> find_scalars(std::string_view key, std::string_view wanted,
                                             std::optional<T> (*convert)(const Scalar&)) const;

  std::string file_;
  std::vector<KeyValue> entries_;
  std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace strata::gguf
