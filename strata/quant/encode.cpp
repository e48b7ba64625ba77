#include "strata/quant/encode.h"

#include <cmath>

#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata::quant {

bool can_encode(Type type) { return traits(type).encode != nullptr; }

void encode(Type type, std::span<const float> x, std::byte* out) {
  const TypeTraits& t = traits(type);
  row_bytes(type, x.size());  // refuses a broken block
  if (t.encode == nullptr) {
    throw Error(ErrorCode::kUnsupported, format("cannot encode {}", t.name));
  }
  const auto block_values = static_cast<size_t>(t.block_values);
  for (size_t done = 0; done < x.size(); done += block_values) {
    const std::span<const float> block = x.subspan(done, block_values);
    for (size_t j = 0; j < block.size(); ++j) {
      if (std::isfinite(block[j])) continue;
      throw Error(ErrorCode::kInvalidArgument,
                  format("value {} of a row to encode as {} is {}", done + j, t.name, block[j]));
    }
    t.encode(block.data(), out);
    out += t.block_bytes;
  }
}

}  // namespace strata::quant
