#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace strata::gguf {

// Value types of the file format; the numbers are those in the file.
enum class ValueType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// "u32", "string", ...
std::string_view name(ValueType type);

// Bytes of one scalar in the file; 0 for strings and arrays.
int scalar_bytes(ValueType type);

// The elements of an array. Views bytes that the Model owns.
struct Array {
  ValueType element = ValueType::kU8;
  uint64_t size = 0;
  std::span<const std::byte> raw;         // scalars, as in the file: little-endian, not aligned
  std::vector<std::string_view> strings;  // element kString
  std::vector<Array> arrays;              // element kArray
};

// A metadata value. Strings and arrays view bytes that the Model (or whoever made the value) owns.
// The alternatives stand for the value types one to one.
using Value = std::variant<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, float, bool,
                           std::string_view, Array, uint64_t, int64_t, double>;

ValueType type_of(const Value& value);

// "u32", "array of 512 strings", "array of 3 u64".
std::string type_text(const Value& value);

// Scalar i of an array of scalars, widened: u64 for unsigned and bool, i64, f64.
// i must be below size and the element a scalar.
std::variant<uint64_t, int64_t, double> scalar_at(const Array& array, uint64_t i);

}  // namespace strata::gguf
