#pragma once

#include "strata/io/source.h"

namespace strata::gguf {

struct OpenOptions {
  io::Access access = io::Access::kMapped;
  // A file that ends with its header is welcome, too: enough to look at and to plan with.
  bool header_only = false;
};

}  // namespace strata::gguf
