#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "strata/quant/types.h"

namespace strata::gguf {

// One row of the tensor table. The reader has checked all of it: the shape has 1 to 4 extents of at
// least 1, every product fits into 63 bits, rows are whole blocks, the bytes lie inside the file
// and no other tensor has any of them.
struct Tensor {
  static constexpr int kMaxRank = 4;

  std::string_view name;
  uint32_t type_id = 0;                     // as in the file
  const quant::TypeTraits* type = nullptr;  // of type_id; never null
  int rank = 0;
  std::array<int64_t, kMaxRank> extents{};  // outermost first; the file has the reverse
  int shard = 0;                            // index into Model::shards()
  uint64_t offset = 0;                      // of the first byte, from the start of the shard's file
  uint64_t n_bytes = 0;
  uint64_t n_values = 0;

  std::span<const int64_t> shape() const { return {extents.data(), static_cast<size_t>(rank)}; }
  // The tensor as a matrix: the innermost extent are the columns, all others together the rows.
  int64_t n_columns() const { return extents[static_cast<size_t>(rank - 1)]; }
  int64_t n_rows() const { return static_cast<int64_t>(n_values) / n_columns(); }
  uint64_t row_bytes() const { return n_bytes / static_cast<uint64_t>(n_rows()); }
};

// "[16, 32, 64]".
std::string shape_text(std::span<const int64_t> shape);

}  // namespace strata::gguf
