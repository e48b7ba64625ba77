#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "strata/gguf/model.h"
#include "strata/quant/decode.h"

namespace strata::testing {

// The arrays of tests/golden/quant/vectors.gguf: random blocks of each tensor type, and the values
// they hold. The test links strata::gguf.
class QuantVectors {
 public:
  // Of each type.
  static constexpr size_t kValues = 2048;

  std::span<const std::byte> blocks(std::string_view type) const {
    return model_.bytes(model_.get(std::string(type) + ".blocks"));
  }

  std::vector<float> values(std::string_view type) const {
    const gguf::Tensor& tensor = model_.get(std::string(type) + ".values");
    std::vector<float> out(tensor.n_values);
    quant::decode(quant::Type::kF32, model_.bytes(tensor).data(), out);
    return out;
  }

 private:
  gguf::Model model_ = gguf::Model::open(STRATA_SOURCE_DIR "/tests/golden/quant/vectors.gguf");
};

}  // namespace strata::testing
