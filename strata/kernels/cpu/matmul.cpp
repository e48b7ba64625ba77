#include "strata/kernels/cpu/matmul.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <vector>

#include "strata/base/check.h"
#include "strata/base/cpu_features.h"
#include "strata/quant/canonical.h"
#include "strata/quant/codebooks.h"
#include "strata/quant/term.h"

namespace strata::kernels::cpu {
namespace {

constexpr int kSegments = 8;
constexpr int kSumGroup = 16;
constexpr size_t kAlign = 64;

size_t aligned(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

std::vector<const DotTable*> find_tables() {
  std::vector<const DotTable*> tables;
  const CpuFeatures& cpu = cpu_features();
  if (cpu.avx512 && cpu.avx512_vnni) tables.push_back(&kDotAvx512);
  if (cpu.avx2) tables.push_back(&kDotAvx2);
  return tables;
}

const std::vector<const DotTable*>& tables() {
  static const std::vector<const DotTable*> found = find_tables();
  return found;
}

std::atomic<const DotTable*>& chosen() {
  static std::atomic<const DotTable*> table{tables().empty() ? nullptr : tables().front()};
  return table;
}

// Kernels read an entry of the codebooks as one word.
static_assert(std::endian::native == std::endian::little);
const DotGrids kGrids = {reinterpret_cast<const uint64_t*>(quant::kIq2xxsGrid.data()),
                         reinterpret_cast<const uint64_t*>(quant::kIq2xsGrid.data()),
                         reinterpret_cast<const uint64_t*>(quant::kIq2sGrid.data()),
                         reinterpret_cast<const uint32_t*>(quant::kIq3xxsGrid.data()),
                         reinterpret_cast<const uint32_t*>(quant::kIq3sGrid.data())};

// The form without vectors: quant/canonical.h over the arrays of DotArgs, for types or machines
// that have no kernel.
float dot_terms(const quant::TypeTraits& t, const std::byte* weight_row, int cols, const int8_t* q,
                const float* scale) {
  const int block = t.activation_block;
  const int n_blocks = cols / block;
  const int terms_a_block = t.block_values / t.term_values;
  quant::Term term;
  float result = 0;
  for (int s = 0; s < kSegments; ++s) {
    const int end = static_cast<int>(int64_t{s + 1} * n_blocks / kSegments);
    float acc = 0;
    for (int j = static_cast<int>(int64_t{s} * n_blocks / kSegments) * block; j < end * block;
         j += t.term_values) {
      t.unpack(weight_row + static_cast<ptrdiff_t>(j / t.block_values) * t.block_bytes,
               j / t.term_values % terms_a_block, term);
      int32_t sum = 0;
      int32_t min = 0;
      for (int i = 0; i < t.term_values; ++i) {
        const int g = i / quant::Term::kGroup;
        sum += term.scale[g] * term.code[i] * q[j + i];
        if (t.has_min) min += term.min[g] * q[j + i];
      }
      const float dx = scale[j / block];
      acc = std::fma(static_cast<float>(sum), term.d * dx, acc);
      if (t.has_min) acc = std::fma(-static_cast<float>(min), term.dmin * dx, acc);
    }
    result = s == 0 ? acc : result + acc;
  }
  return result;
}

float dot_float_row(const quant::TypeTraits& t, const std::byte* weight_row, int cols,
                    const float* x) {
  constexpr int kLanes = 32;
  float lane[kLanes] = {};
  float w[kLanes];
  for (int i = 0; i < cols; i += kLanes) {
    const int n = std::min(kLanes, cols - i);
    t.decode_floats(weight_row + static_cast<ptrdiff_t>(i) * t.block_bytes, static_cast<size_t>(n),
                    w);
    for (int l = 0; l < n; ++l) lane[l] = std::fma(w[l], x[i + l], lane[l]);
  }
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int l = 0; l < width; ++l) lane[l] += lane[l + width];
  }
  return lane[0];
}

void multiply_plainly(const quant::TypeTraits& t, const DotArgs& a) {
  for (int o = a.first_row; o < a.end_row; ++o) {
    const auto* w =
        reinterpret_cast<const std::byte*>(a.w) + static_cast<size_t>(o) * a.w_row_bytes;
    for (int i = 0; i < a.n_rows; ++i) {
      const int64_t xr = a.x_index != nullptr ? a.x_index[i] : i;
      const int64_t yr = a.y_index != nullptr ? a.y_index[i] : i;
      a.y[yr * a.y_stride + o] = t.type_class == quant::TypeClass::kFloat
                                     ? dot_float_row(t, w, a.cols, a.x + xr * a.x_stride)
                                     : dot_terms(t, w, a.cols, a.q + xr * a.cols,
                                                 a.scale + xr * (a.cols / t.activation_block));
    }
  }
}

DotArgs make_args(const WeightRows& w, int first_row, int end_row, int n_rows,
                  std::span<const int32_t> index, const OutRows& out) {
  DotArgs a{};
  a.w = reinterpret_cast<const uint8_t*>(w.data);
  a.w_row_bytes = w.row_bytes;
  a.first_row = first_row;
  a.end_row = end_row;
  a.cols = w.cols;
  a.x_index = index.empty() ? nullptr : index.data();
  a.n_rows = index.empty() ? n_rows : static_cast<int>(index.size());
  a.y = out.y;
  a.y_stride = out.stride;
  a.y_index = out.row;
  a.grids = &kGrids;
  return a;
}

void multiply(const quant::TypeTraits& t, const DotArgs& a) {
  if (a.first_row >= a.end_row || a.n_rows == 0) return;
  const DotTable* table = dot_table();
  const auto id = static_cast<uint32_t>(t.type);
  if (table != nullptr && id < DotTable::kTypes && table->matmul[id] != nullptr) {
    table->matmul[id](a);
  } else {
    multiply_plainly(t, a);
  }
}

}  // namespace

Bytes quant_rows_bytes(int n_rows, int cols, int block) {
  const auto values = static_cast<size_t>(n_rows) * static_cast<size_t>(cols);
  return aligned(values) + aligned(values / static_cast<size_t>(block) * sizeof(float)) +
         aligned(values / kSumGroup * sizeof(int16_t));
}

QuantRows place_quant_rows(int n_rows, int cols, int block, std::byte* scratch) {
  STRATA_CHECK(block == 32 || block == 256);
  STRATA_CHECK(cols % block == 0);
  STRATA_CHECK(reinterpret_cast<uintptr_t>(scratch) % kAlign == 0);
  const auto values = static_cast<size_t>(n_rows) * static_cast<size_t>(cols);
  std::byte* scale = scratch + aligned(values);
  std::byte* sums = scale + aligned(values / static_cast<size_t>(block) * sizeof(float));
  return {reinterpret_cast<int8_t*>(scratch),
          reinterpret_cast<float*>(scale),
          reinterpret_cast<int16_t*>(sums),
          n_rows,
          cols,
          block};
}

void quantize_rows(const float* x, int64_t x_stride, int first_row, int end_row,
                   const QuantRows& out) {
  const DotTable* table = dot_table();
  for (int64_t r = first_row; r < end_row; ++r) {
    const float* row = x + r * x_stride;
    int8_t* q = out.q + r * out.cols;
    float* scale = out.scale + r * (out.cols / out.block);
    int16_t* sums = out.sums + r * (out.cols / kSumGroup);
    if (table != nullptr) {
      table->quantize(row, out.cols, out.block, q, scale, sums);
      continue;
    }
    const quant::QuantRow plain = quant::quantize_row(row, out.cols, out.block);
    std::copy(plain.q.begin(), plain.q.end(), q);
    std::copy(plain.scale.begin(), plain.scale.end(), scale);
    for (int i = 0; i < out.cols / kSumGroup; ++i) {
      int sum = 0;
      for (int j = 0; j < kSumGroup; ++j) sum += q[i * kSumGroup + j];
      sums[i] = static_cast<int16_t>(sum);
    }
  }
}

void matmul(const WeightRows& w, int first_row, int end_row, const QuantRows& x,
            std::span<const int32_t> index, const OutRows& out) {
  const quant::TypeTraits& t = quant::traits(w.type);
  STRATA_CHECK(t.type_class == quant::TypeClass::kQuantised);
  STRATA_CHECK(x.block == t.activation_block && x.cols == w.cols);
  STRATA_CHECK(w.cols % t.block_values == 0);
  DotArgs a = make_args(w, first_row, end_row, x.n_rows, index, out);
  a.q = x.q;
  a.scale = x.scale;
  a.sums = x.sums;
  multiply(t, a);
}

void matmul_float(const WeightRows& w, int first_row, int end_row, const FloatRows& x,
                  std::span<const int32_t> index, const OutRows& out) {
  const quant::TypeTraits& t = quant::traits(w.type);
  STRATA_CHECK(t.type_class == quant::TypeClass::kFloat);
  DotArgs a = make_args(w, first_row, end_row, x.n_rows, index, out);
  a.x = x.x;
  a.x_stride = x.stride;
  multiply(t, a);
}

std::span<const DotTable* const> dot_tables() { return tables(); }

void use_dot_table(const DotTable* table) { chosen().store(table, std::memory_order_relaxed); }

const DotTable* dot_table() { return chosen().load(std::memory_order_relaxed); }

}  // namespace strata::kernels::cpu
