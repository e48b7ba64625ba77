#pragma once

#include "strata/kernels/ops/sample.h"

namespace strata::kernels::ref {

// The token of one row, as SampleRows says. Shared with the CPU backend, which spreads the rows.
int32_t sample_row(const SampleRows& a, int row);

}  // namespace strata::kernels::ref
