#include "strata/quant/decode.h"

#include "strata/base/error.h"
#include "strata/base/format.h"
#include "strata/quant/term.h"

namespace strata::quant {
namespace {

void write_values(const Term& term, const TypeTraits& t, float* out) {
  for (int g = 0; g < t.term_values / Term::kGroup; ++g) {
    const float scale = term.d * static_cast<float>(term.scale[g]);
    const int8_t* code = term.code + Term::kGroup * g;
    float* values = out + Term::kGroup * g;
    for (int j = 0; j < Term::kGroup; ++j) values[j] = scale * static_cast<float>(code[j]);
    if (!t.has_min) continue;
    const float min = term.dmin * static_cast<float>(term.min[g]);
    for (int j = 0; j < Term::kGroup; ++j) values[j] -= min;
  }
}

}  // namespace

void decode(Type type, const std::byte* blocks, std::span<float> out) {
  const TypeTraits& t = traits(type);
  row_bytes(type, out.size());  // refuses a broken block
  if (t.decode_floats != nullptr) {
    t.decode_floats(blocks, out.size(), out.data());
    return;
  }
  if (t.unpack == nullptr) {
    throw Error(ErrorCode::kUnsupported, format("{} is not a weight type", t.name));
  }
  Term term;
  for (size_t done = 0; done < out.size(); done += static_cast<size_t>(t.block_values)) {
    for (int i = 0; i < t.block_values / t.term_values; ++i) {
      t.unpack(blocks, i, term);
      write_values(term, t, out.data() + done + static_cast<size_t>(i * t.term_values));
    }
    blocks += t.block_bytes;
  }
}

}  // namespace strata::quant
