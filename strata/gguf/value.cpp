#include "strata/gguf/value.h"

#include <array>
#include <cstring>

#include "strata/base/check.h"
#include "strata/base/format.h"

namespace strata::gguf {
namespace {

struct TypeFacts {
  std::string_view name;
  int bytes;
};

// By number of the type.
constexpr std::array<TypeFacts, 13> kFacts = {{{"u8", 1},
                                               {"i8", 1},
                                               {"u16", 2},
                                               {"i16", 2},
                                               {"u32", 4},
                                               {"i32", 4},
                                               {"f32", 4},
                                               {"bool", 1},
                                               {"string", 0},
                                               {"array", 0},
                                               {"u64", 8},
                                               {"i64", 8},
                                               {"f64", 8}}};
static_assert(std::variant_size_v<Value> == kFacts.size());
static_assert(std::is_same_v<std::variant_alternative_t<9, Value>, Array>);
static_assert(std::is_same_v<std::variant_alternative_t<12, Value>, double>);

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

}  // namespace

std::string_view name(ValueType type) { return kFacts.at(static_cast<size_t>(type)).name; }

int scalar_bytes(ValueType type) { return kFacts.at(static_cast<size_t>(type)).bytes; }

ValueType type_of(const Value& value) { return static_cast<ValueType>(value.index()); }

std::string type_text(const Value& value) {
  const auto* array = std::get_if<Array>(&value);
  if (array == nullptr) return std::string(name(type_of(value)));
  const bool words = array->element == ValueType::kString || array->element == ValueType::kArray;
  return format("array of {} {}{}", array->size, name(array->element),
                words && array->size != 1 ? "s" : "");
}

std::variant<uint64_t, int64_t, double> scalar_at(const Array& array, uint64_t i) {
  const int width = scalar_bytes(array.element);
  STRATA_CHECK(width > 0 && i < array.size);
  const std::byte* at = array.raw.data() + i * static_cast<uint64_t>(width);
  switch (array.element) {
    case ValueType::kU8:
    case ValueType::kBool:
      return uint64_t{load<uint8_t>(at)};
    case ValueType::kI8:
      return int64_t{load<int8_t>(at)};
    case ValueType::kU16:
      return uint64_t{load<uint16_t>(at)};
    case ValueType::kI16:
      return int64_t{load<int16_t>(at)};
    case ValueType::kU32:
      return uint64_t{load<uint32_t>(at)};
    case ValueType::kI32:
      return int64_t{load<int32_t>(at)};
    case ValueType::kF32:
      return double{load<float>(at)};
    case ValueType::kU64:
      return load<uint64_t>(at);
    case ValueType::kI64:
      return load<int64_t>(at);
    case ValueType::kF64:
      return load<double>(at);
    case ValueType::kString:
    case ValueType::kArray:
      break;
  }
  STRATA_CHECK(false);
  return uint64_t{0};
}

}  // namespace strata::gguf
