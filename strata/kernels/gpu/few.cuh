#pragma once

#include "strata/kernels/gpu/activations.cuh"
#include "strata/kernels/gpu/blocks.cuh"
#include "strata/kernels/gpu/chain.cuh"
#include "strata/kernels/gpu/few.h"
#include "strata/kernels/gpu/launch.h"
#include "strata/kernels/gpu/types.cuh"

// Products of tiles with few rows of activations, which wait for memory and for little else. A
// block of threads asks for all bytes of its tiles at once, before the kernel in front has ended
// where these are known by then, and makes its activations ready while they come. Then a warp has
// a segment of the canonical order, two lanes a row of the tile: they share the integers of a
// block, and add its floats up in order.
namespace strata::kernels::gpu {

// Rows of activations that a thread has in registers.
template <bool kMany>
constexpr int kRowsOf = kMany ? kFewAtOnce : 1;

// As InTile, in shared memory.
struct InSharedTile {
  const uint32_t* words;
  const uint16_t* halves;
  STRATA_MEMBER uint32_t word(int i) const { return words[i * kTileRows]; }
  STRATA_MEMBER uint16_t half(int i) const { return halves[i * kTileRows]; }
};
template <class T>
STRATA_FN InSharedTile block_in_shared(const uint8_t* tile, int n_blocks, int b, int r) {
  const auto* halves = reinterpret_cast<const uint16_t*>(tile);
  const auto* words =
      reinterpret_cast<const uint32_t*>(tile + 2 * kTileRows * T::kHalves * n_blocks);
  return {words + b * T::kWords * kTileRows + r, halves + b * T::kHalves * kTileRows + r};
}

// Adds this warp's segment of a tile, in lanes r and r + 16 for row r. x: kRows rows of cols.
template <class T, int kRows>
STRATA_FN void add_segment(const uint8_t* tile, int cols, const QuantRows& x, float (&acc)[kRows]) {
  static_assert(T::kTerms == 1);
  constexpr int kPerBlock = T::kValues / T::kBlock;  // activation blocks of a weight block
  constexpr int kStep = T::kBlock == 256 ? 1 : 2;    // a block that lanes share, or one each
  const int r = lane_id() % kTileRows, half = lane_id() / kTileRows;
  const int n_blocks = cols / T::kBlock;
  const int from = warp_id() * n_blocks / kFewWarps, end = (warp_id() + 1) * n_blocks / kFewWarps;
  const auto block = [&](int b) {
    return block_in_shared<T>(tile, n_blocks / kPerBlock, b / kPerBlock, r);
  };
#pragma unroll 1
  for (int b = from; b < end; b += kStep) {
    const int mine = kStep == 1 ? b : min(b + half, end - 1);
    const InSharedTile w = block(mine);
    int isum[kRows] = {}, imin[kRows] = {};
    const auto use = [&](int sub, const Code& code, int scale, int least) {
      const int at = mine * T::kBlock + 16 * sub;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const int4 q = *reinterpret_cast<const int4*>(x.q + i * cols + at);
        int dot = __dp4a(static_cast<int>(code.w[0]), q.x, 0);
        dot = __dp4a(static_cast<int>(code.w[1]), q.y, dot);
        dot = __dp4a(static_cast<int>(code.w[2]), q.z, dot);
        dot = __dp4a(static_cast<int>(code.w[3]), q.w, dot);
        if constexpr (T::kBias != 0 || T::kMin) {
          const int sum = x.sums[(i * cols + at) / 16];
          dot -= T::kBias * sum;
          imin[i] += least * sum;
        }
        isum[i] += scale * dot;
      }
    };
    if constexpr (kStep == 1) {
      constexpr int kShared = T::kParts / 2;
#pragma unroll
      for (int p = 0; p < kShared; ++p) T::each(w, half * kShared + p, use);
    } else {
      T::each(w, mine % T::kParts, use);
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int other = from_lane_xor(isum[i], kTileRows);
      int other_min = 0;
      if constexpr (T::kMin) other_min = from_lane_xor(imin[i], kTileRows);
      const auto add = [&](int at, int sum, int min_sum) {
        const InSharedTile of = block(at);
        const float dx = x.scale[i * n_blocks + at];
        acc[i] = __builtin_fmaf(static_cast<float>(sum), T::d(of, 0) * dx, acc[i]);
        if constexpr (T::kMin) {
          acc[i] = __builtin_fmaf(-static_cast<float>(min_sum), T::dmin(of) * dx, acc[i]);
        }
      };
      if constexpr (kStep == 1) {
        add(b, isum[i] + other, imin[i] + other_min);
      } else {
        add(b, half == 0 ? isum[i] : other, half == 0 ? imin[i] : other_min);
        if (b + 1 < end) add(b + 1, half == 0 ? other : isum[i], half == 0 ? other_min : imin[i]);
      }
    }
  }
}

// Where things lie in a block's shared memory.
struct FewMemory {
  uint8_t* tiles;
  QuantRows x;
  float* segments;  // [tiles_each][segments][16][rows]
  int* entries;     // [kMostFewEntries]
};
template <class T>
STRATA_FN FewMemory few_memory(uint8_t* at, int cols, int n_tiles, int n_rows) {
  const FewLayout l = few_layout(T::kBytes, T::kValues, T::kBlock, cols, n_tiles, n_rows);
  return {at,
          {reinterpret_cast<int8_t*>(at + l.q), reinterpret_cast<float*>(at + l.scale),
           reinterpret_cast<int16_t*>(at + l.sums)},
          reinterpret_cast<float*>(at + l.segments),
          reinterpret_cast<int*>(at + l.entries)};
}

// One row of activations, quantised by this block of threads.
template <int kBlock>
STRATA_FN void quantise_row(const ActivationSource& from, int64_t row, int cols,
                            const QuantRows& to) {
#pragma unroll 1
  for (int piece = warp_id(); piece * kPiece < cols; piece += kFewWarps) {
    const int at = piece * kPiece + lane_id() * kEach;
    float x[kEach] = {};
    if (at < cols) load_eight(from, row * cols + at, x);
    const QuantEight eight = quantise_eight<kBlock>(x);
    if (at < cols) keep_eight<kBlock>(eight, at, to);
  }
}
// One that was quantised before, to place i.
template <int kBlock>
STRATA_FN void bring_row(const QuantRows& from, int64_t row, int cols, int i, const QuantRows& to) {
  fetch(to.q + i * cols, from.q + row * cols, cols);
  const int n_blocks = cols / kBlock;
  for (int b = threadIdx.x; b < n_blocks; b += kFewThreads) {
    to.scale[i * n_blocks + b] = from.scale[row * n_blocks + b];
  }
  const auto* const sums = reinterpret_cast<const uint32_t*>(from.sums + row * (cols / 16));
  auto* const to_sums = reinterpret_cast<uint32_t*>(to.sums + i * (cols / 16));
  for (int b = threadIdx.x; b < cols / 32; b += kFewThreads) to_sums[b] = sums[b];
}

// The entries that take the expert of this block of threads; 0 if another block has them.
template <bool kMany>
STRATA_FN int entries_of_expert(const FewArgs& a, int* entries) {
  const int entry = blockIdx.y, n = *a.n_rows * a.top_k;
  if (entry >= n) return 0;
  if constexpr (!kMany) {
    if (threadIdx.x == 0) entries[0] = entry;
    return 1;
  } else {
    const int expert = a.id[entry];
    int n_found = 0;
    for (int base = 0; base < n; base += kLanes) {
      const int at = base + lane_id();
      const uint32_t found = lanes_where(at < n && a.id[at] == expert);
      if (base <= entry && (found & lanes_before(entry - base)) != 0) return 0;
      if (warp_id() == 0 && (found >> lane_id() & 1U) != 0) {
        entries[n_found + __popc(found & lanes_before(lane_id()))] = at;
      }
      n_found += __popc(found);
    }
    return n_found;
  }
}

// Rows of float weights against the rows of activations, a warp a weight row in its 32 lanes.
template <class At, int kRows>
STRATA_FN void add_floats(const uint8_t* w, const float* x, int stride, int n,
                          float (&acc)[kRows]) {
#pragma unroll 8
  for (int i = lane_id(); i < n; i += kLanes) {
    const float value = At::at(w, i);
#pragma unroll
    for (int k = 0; k < kRows; ++k) acc[k] = __builtin_fmaf(value, x[k * stride + i], acc[k]);
  }
}
struct SharedF32 {
  STRATA_MEMBER static float at(const uint8_t* w, int i) {
    return reinterpret_cast<const float*>(w)[i];
  }
};
struct SharedF16 {
  STRATA_MEMBER static float at(const uint8_t* w, int i) {
    return load_half(reinterpret_cast<const uint16_t*>(w)[i]);
  }
};
struct SharedBF16 {
  STRATA_MEMBER static float at(const uint8_t* w, int i) {
    return bits_to_float(static_cast<uint32_t>(reinterpret_cast<const uint16_t*>(w)[i]) << 16);
  }
};

template <bool kMany>
STRATA_FN void few_floats(const FewArgs& a, uint8_t* memory) {
  constexpr int kRows = kRowsOf<kMany>;
  const FewFloats& f = a.floats_beside;
  int block = blockIdx.x, which = 0;
  while (block >= (f.job[which].rows + f.rows_each - 1) / f.rows_each) {
    block -= (f.job[which++].rows + f.rows_each - 1) / f.rows_each;
  }
  const FewFloats::Job& job = f.job[which];
  const int first_row = block * f.rows_each, n_w = min(f.rows_each, job.rows - first_row);
  const int size = job.type == FewFloats::Type::kF32 ? 4 : 2;
  auto* const x = reinterpret_cast<float*>(memory + f.rows_each * f.chunk * 4);
  const bool whole = f.chunk >= a.cols;
  const auto fetch_weights = [&](int c, int n) {
    for (int k = 0; k < n_w; ++k) {
      fetch(memory + k * f.chunk * 4, job.data + ((first_row + k) * int64_t{a.cols} + c) * size,
            n * size);
    }
  };
  if (whole) fetch_weights(0, a.cols);
  wait_for_before();
  const int n = *a.n_rows * a.rows_each;
  for (int first = 0; first < n; first += kRows) {
    float acc[kRows] = {};
    for (int c = 0; c < a.cols; c += f.chunk) {
      const int here = min(f.chunk, a.cols - c);
      if (!whole) fetch_weights(c, here);
      for (int i = 0; i < kRows; ++i) {
        fetch(x + i * f.chunk, f.x + min(first + i, n - 1) * int64_t{a.cols} + c, here * 4);
      }
      fetched();
      __syncthreads();
      if (warp_id() < n_w) {
        const uint8_t* const w = memory + warp_id() * f.chunk * 4;
        if (job.type == FewFloats::Type::kF32) add_floats<SharedF32>(w, x, f.chunk, here, acc);
        if (job.type == FewFloats::Type::kF16) add_floats<SharedF16>(w, x, f.chunk, here, acc);
        if (job.type == FewFloats::Type::kBF16) add_floats<SharedBF16>(w, x, f.chunk, here, acc);
      }
      __syncthreads();
    }
    if (warp_id() >= n_w) continue;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const float sum = lane_tree(acc[i]);
      if (lane_id() != 0 || first + i >= n) continue;
      job.y[int64_t{first + i} * job.rows + first_row + warp_id()] =
          sum * (job.scale ? *job.scale : 1.0f);
    }
  }
  fetched();
}

// Blocks in x: those of float rows, then the tiles of all matrices; in y: entries of experts.
template <class T, bool kMany>
__global__ void __launch_bounds__(kFewThreads, kMany ? 2 : 4)
    few_kernel(const __grid_constant__ FewArgs a) {
  constexpr int kRows = kRowsOf<kMany>;
  extern __shared__ __align__(128) uint8_t memory[];
  let_next_begin();
  if (static_cast<int>(blockIdx.x) < a.floats_beside.n_blocks) {
    return few_floats<kMany>(a, memory);
  }
  int block = static_cast<int>(blockIdx.x) - a.floats_beside.n_blocks, which = 0;
  const auto blocks_of = [&](int rows) {
    return (rows / kTileRows + a.tiles_each - 1) / a.tiles_each;
  };
  while (block >= blocks_of(a.product[which].rows)) block -= blocks_of(a.product[which++].rows);
  const Product& p = a.product[which];
  const int tile = block * a.tiles_each;
  const int n_tiles = min(a.tiles_each, p.rows / kTileRows - tile);
  const int tile_bytes = a.cols / T::kValues * T::kBytes * kTileRows;
  const FewMemory m = few_memory<T>(memory, a.cols, a.tiles_each, kRows);
  const std::byte* data = p.data;
  const float* scale = p.scale;
  int n = 0;
  const auto fetch_tiles = [&] {
    fetch(m.tiles, data + int64_t{tile} * tile_bytes, n_tiles * tile_bytes);
  };
  if (a.id == nullptr) {
    fetch_tiles();
    wait_for_before();
    n = *a.n_rows * a.rows_each;
  } else {
    wait_for_before();
    n = entries_of_expert<kMany>(a, m.entries);
    if (n == 0) return;
    const int expert = a.id[blockIdx.y];
    data = a.parts[3 * expert + p.part];
    if (data == nullptr) return;
    if (scale != nullptr) scale += expert;
    fetch_tiles();
    __syncthreads();
  }
  const auto entry_of = [&](int i) { return a.id == nullptr ? i : m.entries[i]; };
  for (int first = 0; first < n; first += kRows) {
    if (!kMany && a.quantises) {
      quantise_row<T::kBlock>(a.source, entry_of(first) / a.entries_a_row, a.cols, m.x);
    } else {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const int row = entry_of(min(first + i, n - 1)) / a.entries_a_row;
        bring_row<T::kBlock>(a.x, row, a.cols, i, m.x);
      }
    }
    fetched();
    __syncthreads();
#pragma unroll 1
    for (int t = 0; t < n_tiles; ++t) {
      float acc[kRows] = {};
      add_segment<T, kRows>(m.tiles + t * tile_bytes, a.cols, m.x, acc);
      if (lane_id() >= kTileRows) continue;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        m.segments[((t * kFewWarps + warp_id()) * kRows + i) * kTileRows + lane_id()] = acc[i];
      }
    }
    __syncthreads();
#pragma unroll 1
    for (int j = threadIdx.x; j < n_tiles * kRows * kTileRows; j += kFewThreads) {
      const int t = j / (kRows * kTileRows), i = j / kTileRows % kRows, r = j % kTileRows;
      const float* const of = m.segments + (t * kFewWarps * kRows + i) * kTileRows + r;
      float sum = of[0];
#pragma unroll
      for (int s = 1; s < kFewWarps; ++s) sum = sum + of[s * kRows * kTileRows];
      if (first + i >= n) continue;
      p.y[int64_t{entry_of(first + i)} * p.rows + kTileRows * (tile + t) + r] =
          sum * (scale ? *scale : 1.0f);
    }
    if (kMany) __syncthreads();
  }
  fetched();
}

// The grid and memory were chosen by few.cu.
template <class T>
void launch_few(const FewArgs& a, NativeStream s) {
  const dim3 grid(static_cast<unsigned>(a.n_blocks), static_cast<unsigned>(a.n_y));
  const auto shared = static_cast<size_t>(a.shared_bytes);
  if (a.many) {
    launch_chained(few_kernel<T, true>, grid, kFewThreads, shared, s, a);
  } else {
    launch_chained(few_kernel<T, false>, grid, kFewThreads, shared, s, a);
  }
}

}  // namespace strata::kernels::gpu
