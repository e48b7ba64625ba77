#pragma once

#include "strata/kernels/gpu/launch.h"
#include "strata/kernels/gpu/products.h"
#include "strata/kernels/gpu/types.cuh"

// Products of quantised weights in the canonical order (quant/canonical.h), 16 weight rows a block
// of threads. The exact integer sums may come about in any order, so all threads share them; then
// the floats of a row, in 8 segments, are each added up by a thread of its own.
namespace strata::kernels::gpu {

constexpr int kSegments = 8;
constexpr int kProductThreads = 256;
constexpr int kGroups = kProductThreads / kTileRows;  // threads that share a row of the tile
static_assert(kGroups >= kSegments);

// One tile of a matrix against up to kRows rows of activations.
template <class T, bool kTiled, int kRows>
struct Tile {
  // A unit of work: a part of a block of 256, or a block of 32. One row has room for the integers
  // of every part; several add them up block by block.
  static constexpr int kUnits = T::kBlock == 256 ? T::kParts : 1;
  static constexpr int kSlots = T::kBlock == 32 ? T::kTerms : (kRows == 1 ? T::kParts : 1);
  static constexpr bool kAdds = kSlots < kUnits;
  static constexpr int kBytesOfBlock = kSlots * kTileRows * kRows * 4 * (T::kMin ? 2 : 1);
  static constexpr int kSegmentBytes = kSegments * kTileRows * kRows * 4;
  // Activation blocks whose integers fit at once, and the memory of n of them.
  static constexpr int kMost = (40 * 1024) / kBytesOfBlock;
  static constexpr int chunk(int n) { return n < kMost ? n : kMost; }
  static constexpr int bytes(int n) { return kSegmentBytes + chunk(n) * kBytesOfBlock; }

  const uint8_t* base;  // of the tile, or of row r
  QuantRows x;
  int64_t row[kRows];  // of the activations
  int cols, n_blocks, r;
  bool counts;  // row r of the tile is one of the matrix

  STRATA_MEMBER auto block(int b) const {
    constexpr int kActivationBlocks = T::kValues / T::kBlock;
    const int at = b / kActivationBlocks;
    if constexpr (kTiled) {
      return block_in_tile<T>(base, n_blocks / kActivationBlocks, at, r);
    } else {
      return block_in_row<T>(base, at);
    }
  }
  // Adds what 16 values give: sum of scale (code - kBias) q, and of min q.
  STRATA_MEMBER void add(int i, int b, int sub, const Code& code, int scale, int min, int& isum,
                         int& imin) const {
    const int64_t at = int64_t{b} * T::kBlock + 16 * sub;
    const int4 q = __ldg(reinterpret_cast<const int4*>(x.q + row[i] * cols + at));
    int dot = __dp4a(static_cast<int>(code.w[0]), q.x, 0);
    dot = __dp4a(static_cast<int>(code.w[1]), q.y, dot);
    dot = __dp4a(static_cast<int>(code.w[2]), q.z, dot);
    dot = __dp4a(static_cast<int>(code.w[3]), q.w, dot);
    if constexpr (T::kBias != 0 || T::kMin) {
      const int sum = x.sums[(row[i] * cols + at) / 16];
      dot -= T::kBias * sum;
      imin += min * sum;
    }
    isum += scale * dot;
  }
  STRATA_MEMBER int place(int b, int slot, int i) const {
    return ((b * kSlots + slot) * kRows + i) * kTileRows + r;
  }

  // The integers of blocks [first, first + n), shared by all threads.
  STRATA_MEMBER void integers(int first, int n, int* isums, int* imins) const {
    constexpr int kTerms = T::kTerms;
    if constexpr (kAdds) {
      for (int i = threadIdx.x; i < n * kSlots * kTileRows * kRows; i += kProductThreads) {
        isums[i] = 0;
        if constexpr (T::kMin) imins[i] = 0;
      }
      __syncthreads();
    }
    if (!counts) return;
#pragma unroll 2
    for (int u = static_cast<int>(threadIdx.x) / kTileRows; u < n * kUnits; u += kGroups) {
      const int b = u / kUnits, unit = u % kUnits;
      const int part = T::kBlock == 256 ? unit : (first + b) % T::kParts;
      int isum[kRows][kTerms] = {}, imin[kRows][kTerms] = {};
      T::each(block(first + b), part, [&](int sub, const Code& code, int scale, int min) {
        const int term = kTerms == 1 ? 0 : sub;
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          add(i, first + b, sub, code, scale, min, isum[i][term], imin[i][term]);
        }
      });
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        if constexpr (kAdds) {
          atomicAdd(&isums[place(b, 0, i)], isum[i][0]);
          if constexpr (T::kMin) atomicAdd(&imins[place(b, 0, i)], imin[i][0]);
        } else {
#pragma unroll
          for (int t = 0; t < kTerms; ++t) {
            isums[place(b, unit + t, i)] = isum[i][t];
            if constexpr (T::kMin) imins[place(b, unit + t, i)] = imin[i][t];
          }
        }
      }
    }
  }

  // The floats of the segment's blocks among them, in order.
  STRATA_MEMBER void chain(int segment, int first, int n, const int* isums, const int* imins,
                           float (&acc)[kRows]) const {
    const int from = max(segment * n_blocks / kSegments, first);
    const int end = min((segment + 1) * n_blocks / kSegments, first + n);
#pragma unroll 4
    for (int b = from; b < end; ++b) {
      const auto w = block(b);
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const float dx = x.scale[row[i] * n_blocks + b];
#pragma unroll
        for (int t = 0; t < T::kTerms; ++t) {
          int isum = 0, imin = 0;
          constexpr int kJoined = T::kTerms == 1 ? kSlots : 1;
#pragma unroll
          for (int k = 0; k < kJoined; ++k) {
            isum += isums[place(b - first, t + k, i)];
            if constexpr (T::kMin) imin += imins[place(b - first, t + k, i)];
          }
          const float d = T::d(w, b % T::kParts * T::kTerms + t);
          acc[i] = __builtin_fmaf(static_cast<float>(isum), d * dx, acc[i]);
          if constexpr (T::kMin) {
            acc[i] = __builtin_fmaf(-static_cast<float>(imin), T::dmin(w) * dx, acc[i]);
          }
        }
      }
    }
  }

  // The products of the tile's rows with activation row i: thread i * 16 + r has row r.
  STRATA_MEMBER float product(uint8_t* memory) const {
    const int segment = static_cast<int>(threadIdx.x) / kTileRows, n = chunk(n_blocks);
    auto* const segments = reinterpret_cast<float*>(memory);
    int* const isums = reinterpret_cast<int*>(memory + kSegmentBytes);
    int* const imins = isums + (T::kMin ? n * kSlots * kTileRows * kRows : 0);
    float acc[kRows] = {};
    for (int first = 0; first < n_blocks; first += n) {
      const int here = min(n, n_blocks - first);
      integers(first, here, isums, imins);
      __syncthreads();
      if (segment < kSegments && counts) chain(segment, first, here, isums, imins, acc);
      __syncthreads();
    }
    if (segment < kSegments) {
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        segments[(segment * kTileRows + r) * kRows + i] = acc[i];
      }
    }
    __syncthreads();
    float sum = 0;
    if (segment < kRows) {
      sum = segments[r * kRows + segment];
#pragma unroll
      for (int s = 1; s < kSegments; ++s) {
        sum = sum + segments[(s * kTileRows + r) * kRows + segment];
      }
    }
    __syncthreads();
    return sum;
  }
};

// Where a block of threads finds its work: a matrix, a tile of it, and the entries.
struct Work {
  const uint8_t* data;
  const float* scale;
  const int32_t* entry;  // null: entry i is i
  int n_entries;
};
STRATA_FN Work work_of(const ProductArgs& a, const Product& p, int active) {
  const auto* data = reinterpret_cast<const uint8_t*>(p.data);
  if (a.groups.entry == nullptr) return {data, p.scale, nullptr, *a.n_rows * a.rows_each};
  const int expert = a.groups.expert[active], first = a.groups.first[active];
  data = reinterpret_cast<const uint8_t*>(a.parts[3 * expert + p.part]);
  return {data, p.scale == nullptr ? nullptr : p.scale + expert, a.groups.entry + first,
          a.groups.first[active + 1] - first};
}

// The row of the activations that entry i of the work takes.
STRATA_FN int64_t row_of(const ProductArgs& a, const Work& work, int i) {
  const int row = (work.entry == nullptr ? i : work.entry[i]) / a.entries_a_row;
  return a.x_row == nullptr ? row : a.x_row[row];
}

template <class T, bool kTiled, int kRows>
STRATA_FN void tile_against_rows(const ProductArgs& a, const Product& p, const Work& work, int tile,
                                 int first, uint8_t* memory) {
  Tile<T, kTiled, kRows> here;
  const int64_t row_bytes = int64_t{a.cols / T::kValues} * T::kBytes;
  here.r = static_cast<int>(threadIdx.x) % kTileRows;
  here.counts = kTileRows * tile + here.r < p.rows;
  here.base = work.data + row_bytes * kTileRows * tile + (kTiled ? 0 : row_bytes * here.r);
  here.x = a.x;
  here.cols = a.cols;
  here.n_blocks = a.cols / T::kBlock;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    here.row[i] = row_of(a, work, min(first + i, work.n_entries - 1));
  }
  const float sum = here.product(memory);
  const int i = static_cast<int>(threadIdx.x) / kTileRows;
  if (i >= kRows || first + i >= work.n_entries || !here.counts) return;
  const int64_t entry = work.entry == nullptr ? first + i : work.entry[first + i];
  p.y[entry * p.rows + kTileRows * tile + here.r] = sum * (work.scale ? *work.scale : 1.0f);
}

// Blocks in x: the tiles of all matrices; in y: active experts; in z: pieces of the entries.
// kMany: a matrix may meet several rows. For one alone less is kept in registers, so that more
// blocks of threads are under way.
constexpr int kRowsAtOnce = 4;
template <class T, bool kTiled, bool kMany>
__global__ void __launch_bounds__(kProductThreads, kMany ? 2 : 4) products_kernel(ProductArgs a) {
  extern __shared__ __align__(16) uint8_t memory[];
  int tile = blockIdx.x, which = 0;
  while (tile >= (a.product[which].rows + kTileRows - 1) / kTileRows) {
    tile -= (a.product[which++].rows + kTileRows - 1) / kTileRows;
  }
  const Product& p = a.product[which];
  const int n_active = a.groups.entry == nullptr ? 1 : *a.groups.n_active;
  for (int active = blockIdx.y; active < n_active; active += gridDim.y) {
    const Work work = work_of(a, p, active);
    if (work.data == nullptr) continue;
    if constexpr (kMany) {
      for (int first = blockIdx.z * kRowsAtOnce; first < work.n_entries;
           first += gridDim.z * kRowsAtOnce) {
        if (first + 1 == work.n_entries) {
          tile_against_rows<T, kTiled, 1>(a, p, work, tile, first, memory);
        } else {
          tile_against_rows<T, kTiled, kRowsAtOnce>(a, p, work, tile, first, memory);
        }
      }
    } else if (work.n_entries > 0) {
      tile_against_rows<T, kTiled, 1>(a, p, work, tile, 0, memory);
    }
  }
}

// Entries that one block of threads computes after each other, so that it has read its tile from
// memory once, and experts that blocks of threads share.
constexpr int kEntriesEach = 32, kExpertBlocks = 64;

inline dim3 products_grid(const ProductArgs& a, int rows_each, int entries_each) {
  unsigned tiles = 0;
  for (int i = 0; i < a.n_products; ++i) {
    tiles += blocks_for(a.product[static_cast<size_t>(i)].rows, rows_each);
  }
  const bool grouped = a.groups.entry != nullptr;
  const int64_t most = grouped ? 1 : a.max_entries;
  const int64_t experts = a.n_experts < kExpertBlocks ? a.n_experts : kExpertBlocks;
  return {tiles, grouped ? static_cast<unsigned>(experts) : 1U, blocks_for(most, entries_each)};
}

template <class T, bool kTiled>
void launch_packed(const ProductArgs& a, NativeStream s) {
  const dim3 grid = products_grid(a, kTileRows, kEntriesEach);
  const int n_blocks = a.cols / T::kBlock;
  using One = Tile<T, kTiled, 1>;
  using Many = Tile<T, kTiled, kRowsAtOnce>;
  if (a.one_each) {
    products_kernel<T, kTiled, false><<<grid, kProductThreads, One::bytes(n_blocks), s>>>(a);
    return;
  }
  const int bytes =
      One::bytes(n_blocks) > Many::bytes(n_blocks) ? One::bytes(n_blocks) : Many::bytes(n_blocks);
  products_kernel<T, kTiled, true><<<grid, kProductThreads, bytes, s>>>(a);
}
template <class T>
void launch(Packing packing, const ProductArgs& a, NativeStream s) {
  if constexpr (T::kHalves > 0) {
    if (packing == Packing::kTiles) return launch_packed<T, true>(a, s);
  }
  launch_packed<T, false>(a, s);
}

// By type, in files of their own so that they compile side by side.
void launch_blocks32(quant::Type type, Packing packing, const ProductArgs& a, NativeStream s);
void launch_k(quant::Type type, Packing packing, const ProductArgs& a, NativeStream s);
void launch_grids(quant::Type type, Packing packing, const ProductArgs& a, NativeStream s);
void launch_floats(quant::Type type, const ProductArgs& a, NativeStream s);

}  // namespace strata::kernels::gpu
