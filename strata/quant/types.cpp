#include "strata/quant/types.h"

#include <algorithm>
#include <limits>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::quant {
namespace {

using enum Type;
using enum TypeClass;

// Ascending by id: find_type searches by halving.
constexpr TypeTraits kTypes[] = {
    {kF32, "F32", kFloat, 1, 4},
    {kF16, "F16", kFloat, 1, 2},
    {kQ4_0, "Q4_0", kQuantised, 32, 18},
    {kQ4_1, "Q4_1", kQuantised, 32, 20},
    {kQ5_0, "Q5_0", kQuantised, 32, 22},
    {kQ5_1, "Q5_1", kQuantised, 32, 24},
    {kQ8_0, "Q8_0", kQuantised, 32, 34},
    {kQ2_K, "Q2_K", kQuantised, 256, 84},
    {kQ3_K, "Q3_K", kQuantised, 256, 110},
    {kQ4_K, "Q4_K", kQuantised, 256, 144},
    {kQ5_K, "Q5_K", kQuantised, 256, 176},
    {kQ6_K, "Q6_K", kQuantised, 256, 210},
    {kIQ2_XXS, "IQ2_XXS", kQuantised, 256, 66},
    {kIQ2_XS, "IQ2_XS", kQuantised, 256, 74},
    {kIQ3_XXS, "IQ3_XXS", kQuantised, 256, 98},
    {kIQ1_S, "IQ1_S", kQuantised, 256, 50},
    {kIQ4_NL, "IQ4_NL", kQuantised, 32, 18},
    {kIQ3_S, "IQ3_S", kQuantised, 256, 110},
    {kIQ2_S, "IQ2_S", kQuantised, 256, 82},
    {kIQ4_XS, "IQ4_XS", kQuantised, 256, 136},
    {kI8, "I8", kPlain, 1, 1},
    {kI16, "I16", kPlain, 1, 2},
    {kI32, "I32", kPlain, 1, 4},
    {kI64, "I64", kPlain, 1, 8},
    {kF64, "F64", kPlain, 1, 8},
    {kIQ1_M, "IQ1_M", kQuantised, 256, 56},
    {kBF16, "BF16", kFloat, 1, 2},
    {kMXFP4, "MXFP4", kQuantised, 32, 17},
    {kNVFP4, "NVFP4", kQuantised, 64, 36},
    {kQ1_0, "Q1_0", kQuantised, 128, 18},
    {kQ2_0, "Q2_0", kQuantised, 64, 18},
};
static_assert(std::ranges::is_sorted(kTypes, {}, &TypeTraits::type));

struct Reserved {
  uint32_t id;
  std::string_view name;
};
constexpr Reserved kReserved[] = {{9, "Q8_1"}, {15, "Q8_K"}, {34, "TQ1_0"}, {35, "TQ2_0"}};

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

}  // namespace

std::span<const TypeTraits> all_types() { return kTypes; }

const TypeTraits* find_type(uint32_t gguf_id) {
  const auto* found =
      std::ranges::lower_bound(kTypes, static_cast<Type>(gguf_id), {}, &TypeTraits::type);
  if (found == std::end(kTypes) || found->type != static_cast<Type>(gguf_id)) return nullptr;
  return found;
}

const TypeTraits* find_type(std::string_view name) {
  for (const TypeTraits& t : kTypes) {
    if (std::ranges::equal(t.name, name, {}, upper, upper)) return &t;
  }
  return nullptr;
}

std::string_view reserved_type_name(uint32_t gguf_id) {
  for (const Reserved& r : kReserved) {
    if (r.id == gguf_id) return r.name;
  }
  return {};
}

const TypeTraits& traits(Type type) {
  const TypeTraits* found = find_type(static_cast<uint32_t>(type));
  STRATA_CHECK(found != nullptr);
  return *found;
}

std::optional<uint64_t> find_row_bytes(Type type, uint64_t n_values) {
  const TypeTraits& t = traits(type);
  const auto values = static_cast<uint64_t>(t.block_values);
  const auto bytes = static_cast<uint64_t>(t.block_bytes);
  if (n_values % values != 0) return std::nullopt;
  const uint64_t n_blocks = n_values / values;
  if (n_blocks > std::numeric_limits<uint64_t>::max() / bytes) return std::nullopt;
  return n_blocks * bytes;
}

uint64_t row_bytes(Type type, uint64_t n_values) {
  if (const auto bytes = find_row_bytes(type, n_values)) return *bytes;
  const TypeTraits& t = traits(type);
  throw Error(ErrorCode::kInvalidArgument,
              format("a row of {} values does not fit {}: blocks of {} values, {} bytes each",
                     n_values, t.name, t.block_values, t.block_bytes));
}

}  // namespace strata::quant
