#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "strata/kernels/gpu/products.h"

// Steps of few rows, whose products are bound by memory: few.cuh.
namespace strata::kernels::gpu {

constexpr int kFewThreads = 256, kFewWarps = 8;  // a warp a segment of the canonical order
constexpr int kMostFewRows = 8;
constexpr int kFewAtOnce = 4;  // rows that a thread has in registers
constexpr int kMostFewEntries = 256;

// Matrices of floats beside those of a launch, from the same activations.
struct FewFloats {
  enum class Type : uint8_t { kF32, kF16, kBF16 };
  struct Job {
    const std::byte* data = nullptr;
    const float* scale = nullptr;
    float* y = nullptr;
    int32_t rows = 0;
    Type type = Type::kF32;
  };
  std::array<Job, ProductArgs::kMost> job{};
  int n = 0;
  int n_blocks = 0, rows_each = 1;  // blocks of threads, weight rows of one
  int chunk = 0;                    // columns that it holds at once
  const float* x = nullptr;
};

struct FewArgs : ProductArgs {
  ActivationSource source;
  bool quantises = false;  // one row, from the source; else x holds it
  bool many = false;       // more than one row
  int top_k = 1;
  int tiles_each = 1;  // of a block of threads
  int n_blocks = 0, n_y = 1, shared_bytes = 0;
  FewFloats floats_beside;
};

// Bytes of a block's shared memory, and where what lies.
struct FewLayout {
  int q, scale, sums, segments, entries, end;
};
constexpr FewLayout few_layout(int block_bytes, int block_values, int block, int cols, int n_tiles,
                               int n_rows) {
  const auto up = [](int n) { return (n + 15) / 16 * 16; };
  FewLayout l{};
  l.q = n_tiles * (cols / block_values * block_bytes * 16);
  l.scale = l.q + n_rows * cols;
  l.sums = l.scale + up(n_rows * (cols / block) * 4);
  l.segments = l.sums + up(n_rows * (cols / 16) * 2);
  l.entries = l.segments + n_tiles * kFewWarps * 16 * n_rows * 4;
  l.end = l.entries + kMostFewEntries * 4;
  return l;
}

// Whether a card has the memory for a step's rows of this matrix. rows: 1, or up to kMostFewRows.
bool few_takes(const Weight& w, int64_t rows);
// Chooses grid and memory for the products and floats that args have, and queues them.
// floats alone: type kF32 with no products.
void launch_few(quant::Type type, FewArgs args, NativeStream s);
// Whether addresses and sizes are what float rows are fetched by.
bool few_takes_floats(const Weight& w, const float* x, int64_t rows);

void launch_few_blocks32(quant::Type type, const FewArgs& a, NativeStream s);
void launch_few_k(quant::Type type, const FewArgs& a, NativeStream s);
void launch_few_grids(quant::Type type, const FewArgs& a, NativeStream s);

}  // namespace strata::kernels::gpu
