#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "strata/quant/term.h"

namespace strata::quant {

// The tensor types of a GGUF file that strata knows. The value is the id the file stores.
// NOLINTBEGIN(readability-identifier-naming): the formats are known by these names
enum class Type : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
};
// NOLINTEND(readability-identifier-naming)

// How a type lies in memory and how it is used.
//   kPlain      F64 and the integers: stored and sized, never a weight
//   kFloat      F32, F16, BF16: weights that take f32 activations
//   kQuantised  blocks with a scale: weights that take int8 activations
enum class TypeClass : uint8_t { kPlain, kFloat, kQuantised };

// Units: a row of n values is n / block_values consecutive blocks of block_bytes each.
struct TypeTraits {
  Type type;
  std::string_view name;  // as GGUF tools print it: "Q4_K"
  TypeClass type_class;
  int block_values;
  int block_bytes;

  // Quantised types: the values of one activation scale (256 or 32), the values of one Term, and
  // how the terms of a block are taken apart.
  int activation_block = 0;
  int term_values = 0;
  bool has_min = false;
  UnpackTerm unpack = nullptr;

  // Float types: n stored values to f32.
  void (*decode_floats)(const std::byte* in, size_t n, float* out) = nullptr;

  // One block of finite values; null where strata only reads the type. See encode.h.
  void (*encode)(const float* x, std::byte* block) = nullptr;
};

// Every known type, by ascending id.
std::span<const TypeTraits> all_types();

// Null if the id is unknown or names a type strata does not handle (see reserved_type_name).
const TypeTraits* find_type(uint32_t gguf_id);

// By name, case-insensitive: "q4_k". Null if unknown.
const TypeTraits* find_type(std::string_view name);

// Names of ids that exist elsewhere and are not handled here (Q8_1, TQ1_0, ...), so that an error
// can say what the file holds. Empty if the id means nothing to us.
std::string_view reserved_type_name(uint32_t gguf_id);

// The type must be an enumerator.
const TypeTraits& traits(Type type);
inline std::string_view name(Type type) { return traits(type).name; }

// Bytes of a row of n values; nothing if n is no multiple of the block or the product overflows.
std::optional<uint64_t> find_row_bytes(Type type, uint64_t n_values);

// The same. Errors: kInvalidArgument where find_row_bytes has nothing to say.
uint64_t row_bytes(Type type, uint64_t n_values);

}  // namespace strata::quant
