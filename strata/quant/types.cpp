#include "strata/quant/types.h"

#include <algorithm>
#include <array>
#include <limits>

#include "strata/base/check.h"
#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/quant/families.h"

namespace strata::quant {
namespace {

using enum Type;
using enum TypeClass;

// A quantised type whose term is term_values long; its activation block is never shorter than 32.
constexpr TypeTraits quantised(Type type, std::string_view name, int values, int bytes,
                               int term_values, UnpackTerm unpack) {
  TypeTraits t{type, name, kQuantised, values, bytes};
  t.term_values = term_values;
  t.activation_block = std::max(term_values, 32);
  t.unpack = unpack;
  return t;
}

constexpr TypeTraits floats(Type type, std::string_view name, int bytes,
                            void (*decode)(const std::byte*, size_t, float*),
                            void (*encode)(const float*, std::byte*)) {
  TypeTraits t{type, name, kFloat, 1, bytes};
  t.decode_floats = decode;
  t.encode = encode;
  return t;
}

constexpr TypeTraits plain(Type type, std::string_view name, int bytes) {
  return {type, name, kPlain, 1, bytes};
}

constexpr TypeTraits with_min(TypeTraits t) {
  t.has_min = true;
  return t;
}

constexpr TypeTraits with_encode(TypeTraits t, void (*encode)(const float*, std::byte*)) {
  t.encode = encode;
  return t;
}

// Ascending by id.
constexpr TypeTraits kTypes[] = {
    floats(kF32, "F32", 4, decode_f32, encode_f32),
    floats(kF16, "F16", 2, decode_f16, encode_f16),
    with_encode(quantised(kQ4_0, "Q4_0", 32, 18, 32, unpack_q4_0), encode_q4_0),
    with_min(quantised(kQ4_1, "Q4_1", 32, 20, 32, unpack_q4_1)),
    quantised(kQ5_0, "Q5_0", 32, 22, 32, unpack_q5_0),
    with_min(quantised(kQ5_1, "Q5_1", 32, 24, 32, unpack_q5_1)),
    with_encode(quantised(kQ8_0, "Q8_0", 32, 34, 32, unpack_q8_0), encode_q8_0),
    with_min(quantised(kQ2_K, "Q2_K", 256, 84, 256, unpack_q2_k)),
    quantised(kQ3_K, "Q3_K", 256, 110, 256, unpack_q3_k),
    with_encode(with_min(quantised(kQ4_K, "Q4_K", 256, 144, 256, unpack_q4_k)), encode_q4_k),
    with_min(quantised(kQ5_K, "Q5_K", 256, 176, 256, unpack_q5_k)),
    with_encode(quantised(kQ6_K, "Q6_K", 256, 210, 256, unpack_q6_k), encode_q6_k),
    quantised(kIQ2_XXS, "IQ2_XXS", 256, 66, 256, unpack_iq2_xxs),
    quantised(kIQ2_XS, "IQ2_XS", 256, 74, 256, unpack_iq2_xs),
    quantised(kIQ3_XXS, "IQ3_XXS", 256, 98, 256, unpack_iq3_xxs),
    quantised(kIQ1_S, "IQ1_S", 256, 50, 256, unpack_iq1_s),
    with_encode(quantised(kIQ4_NL, "IQ4_NL", 32, 18, 32, unpack_iq4_nl), encode_iq4_nl),
    quantised(kIQ3_S, "IQ3_S", 256, 110, 256, unpack_iq3_s),
    quantised(kIQ2_S, "IQ2_S", 256, 82, 256, unpack_iq2_s),
    quantised(kIQ4_XS, "IQ4_XS", 256, 136, 256, unpack_iq4_xs),
    plain(kI8, "I8", 1),
    plain(kI16, "I16", 2),
    plain(kI32, "I32", 4),
    plain(kI64, "I64", 8),
    plain(kF64, "F64", 8),
    quantised(kIQ1_M, "IQ1_M", 256, 56, 256, unpack_iq1_m),
    floats(kBF16, "BF16", 2, decode_bf16, encode_bf16),
    quantised(kMXFP4, "MXFP4", 32, 17, 32, unpack_mxfp4),
    quantised(kNVFP4, "NVFP4", 64, 36, 16, unpack_nvfp4),
    quantised(kQ1_0, "Q1_0", 128, 18, 32, unpack_q1_0),
    quantised(kQ2_0, "Q2_0", 64, 18, 32, unpack_q2_0),
};
static_assert(std::ranges::is_sorted(kTypes, {}, &TypeTraits::type));

// By id, since products ask several times each; -1: none.
constexpr size_t kIds = static_cast<size_t>(std::end(kTypes)[-1].type) + 1;
constexpr auto kPlaceOfId = [] {
  std::array<int8_t, kIds> places{};
  places.fill(-1);
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    places[static_cast<size_t>(kTypes[i].type)] = static_cast<int8_t>(i);
  }
  return places;
}();

struct Reserved {
  uint32_t id;
  std::string_view name;
};
constexpr Reserved kReserved[] = {{9, "Q8_1"}, {15, "Q8_K"}, {34, "TQ1_0"}, {35, "TQ2_0"}};

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

}  // namespace

std::span<const TypeTraits> all_types() { return kTypes; }

const TypeTraits* find_type(uint32_t gguf_id) {
  if (gguf_id >= kIds || kPlaceOfId[gguf_id] < 0) return nullptr;
  return &kTypes[kPlaceOfId[gguf_id]];
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
