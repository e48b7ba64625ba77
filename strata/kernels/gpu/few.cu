#include <algorithm>

#include "strata/base/check.h"
#include "strata/kernels/gpu/few.cuh"

namespace strata::kernels::gpu {
namespace {

// Blocks of threads that a multiprocessor runs side by side, the memory each may take for that,
// and the tiles of one when these are small.
constexpr int kBlocksAtOnce = 4, kTileBytes = 48 * 1024, kMostTiles = 4;
constexpr int kFloatBytes = 40 * 1024;  // of a block of float rows, at least

template <bool kMany>
__global__ void __launch_bounds__(kFewThreads)
    few_floats_kernel(const __grid_constant__ FewArgs a) {
  extern __shared__ __align__(128) uint8_t memory[];
  let_next_begin();
  few_floats<kMany>(a, memory);
}

int processors() {
#ifdef STRATA_HIP
  return device_attribute(hipDeviceAttributeMultiprocessorCount);
#else
  return device_attribute(cudaDevAttrMultiProcessorCount);
#endif
}

FewLayout layout_of(quant::Type type, int cols, int n_tiles, bool many) {
  const quant::TypeTraits& t = quant::traits(type);
  return few_layout(t.block_bytes, t.block_values, t.activation_block, cols, n_tiles,
                    many ? kFewAtOnce : 1);
}

// As many rows a block of threads that every multiprocessor has one, as far as memory goes.
void plan_floats(FewArgs& a, int bytes) {
  FewFloats& f = a.floats_beside;
  if (f.n == 0) return;
  const int n_rows = a.many ? kFewAtOnce : 1;
  int rows = 0;
  for (int i = 0; i < f.n; ++i) rows += f.job[static_cast<size_t>(i)].rows;
  const int wanted = std::clamp(rows / processors(), 1, kFewWarps);
  const int row_bytes = a.cols * 4;
  f.rows_each = std::clamp(bytes / row_bytes - n_rows, 1, wanted);
  f.chunk = std::min(a.cols, bytes / 4 / (f.rows_each + n_rows) / 32 * 32);
  for (int i = 0; i < f.n; ++i) {
    f.n_blocks += (f.job[static_cast<size_t>(i)].rows + f.rows_each - 1) / f.rows_each;
  }
  a.shared_bytes = std::max(a.shared_bytes, (f.rows_each + n_rows) * f.chunk * 4);
}

void plan_tiles(quant::Type type, FewArgs& a) {
  int tiles = 0;
  for (int i = 0; i < a.n_products; ++i) {
    tiles += a.product[static_cast<size_t>(i)].rows / kTileRows;
  }
  const int tile_bytes = layout_of(type, a.cols, 1, false).q;
  const int at_once = kBlocksAtOnce * processors();
  a.tiles_each = std::clamp((tiles * a.n_y + at_once - 1) / at_once, 1,
                            std::clamp(kTileBytes / tile_bytes, 1, kMostTiles));
  a.shared_bytes = layout_of(type, a.cols, a.tiles_each, a.many).end;
  plan_floats(a, std::max(a.shared_bytes, kFloatBytes));
  a.n_blocks = a.floats_beside.n_blocks;
  for (int i = 0; i < a.n_products; ++i) {
    a.n_blocks += static_cast<int>(
        blocks_for(a.product[static_cast<size_t>(i)].rows / kTileRows, a.tiles_each));
  }
}

}  // namespace

bool few_takes(const Weight& w, int64_t rows) {
  return rows <= kMostFewRows && w.packing == Packing::kTiles && !w.takes_floats() &&
         layout_of(w.type, w.cols, 1, rows > 1).end <= most_shared();
}

bool few_takes_floats(const Weight& w, const float* x, int64_t rows) {
  const int bytes = quant::traits(w.type).block_bytes;
  return rows <= kMostFewRows && w.cols % 8 == 0 && (w.cols * bytes) % 16 == 0 &&
         reinterpret_cast<uintptr_t>(w.data) % 16 == 0 && reinterpret_cast<uintptr_t>(x) % 16 == 0;
}

void launch_few(quant::Type type, FewArgs a, NativeStream s) {
  if (a.n_products == 0) {
    plan_floats(a, std::min(std::max(kFloatBytes, (a.many ? 5 : 2) * 4 * a.cols), most_shared()));
    const dim3 grid(static_cast<unsigned>(a.floats_beside.n_blocks));
    const auto shared = static_cast<size_t>(a.shared_bytes);
    if (a.many) return launch_chained(few_floats_kernel<true>, grid, kFewThreads, shared, s, a);
    return launch_chained(few_floats_kernel<false>, grid, kFewThreads, shared, s, a);
  }
  plan_tiles(type, a);
  if (quant::traits(type).activation_block == 32) return launch_few_blocks32(type, a, s);
  switch (type) {
    case quant::Type::kQ2_K:
    case quant::Type::kQ3_K:
    case quant::Type::kQ4_K:
    case quant::Type::kQ5_K:
    case quant::Type::kQ6_K:
      return launch_few_k(type, a, s);
    default:
      return launch_few_grids(type, a, s);
  }
}

}  // namespace strata::kernels::gpu
