#include "strata/kernels/op_table.h"

// In the place of table.cpp where no backend of cards is built.
namespace strata::kernels {

const OpTable& gpu_ops() {
  static constexpr OpTable kNone;
  return kNone;
}

}  // namespace strata::kernels
