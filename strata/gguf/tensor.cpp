#include "strata/gguf/tensor.h"

#include "strata/base/format.h"

namespace strata::gguf {

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += format("{}{}", i == 0 ? "" : ", ", shape[i]);
  return text + "]";
}

}  // namespace strata::gguf
