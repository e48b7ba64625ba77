#pragma once

#include <cstddef>

#include "strata/kernels/ops/sample.h"

namespace strata::kernels::ref {

// The token of one row, as SampleRows says, with so many bytes of scratch of its own, 256-byte
// aligned. Shared with the CPU backend, which spreads the rows.
Bytes sample_row_scratch(const SampleRows& a);
int32_t sample_row(const SampleRows& a, int row, std::byte* scratch);

}  // namespace strata::kernels::ref
