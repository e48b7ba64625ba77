#include "strata/kernels/cpu/matmul.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <vector>

#include "strata/base/check.h"
#include "strata/base/cpu_features.h"
#include "strata/kernels/cpu/matmul_plain.h"
#include "strata/kernels/cpu/matmul_planes.h"
#include "strata/quant/canonical.h"
#include "strata/quant/codebooks.h"
#include "strata/quant/tiles.h"

namespace strata::kernels::cpu {
namespace {

constexpr int kSumGroup = 16;
constexpr size_t kAlign = 64;

size_t aligned(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

const DotTable& vbmi_table() {
  static const DotTable table = [] {
    DotTable t = kDotAvx512;
    add_dot_vbmi(t);
    return t;
  }();
  return table;
}

std::vector<const DotTable*> find_tables() {
  std::vector<const DotTable*> tables;
  const CpuFeatures& cpu = cpu_features();
  if (cpu.avx512 && cpu.avx512_vnni && cpu.avx512_vbmi) tables.push_back(&vbmi_table());
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
const DotGrids& grids() {
  static const GridPlanes planes = make_grid_planes();
  static const DotGrids all = {reinterpret_cast<const uint64_t*>(quant::kIq2xxsGrid.data()),
                               reinterpret_cast<const uint64_t*>(quant::kIq2xsGrid.data()),
                               reinterpret_cast<const uint64_t*>(quant::kIq2sGrid.data()),
                               reinterpret_cast<const uint32_t*>(quant::kIq3xxsGrid.data()),
                               reinterpret_cast<const uint32_t*>(quant::kIq3sGrid.data()),
                               &planes};
  return all;
}

DotArgs make_args(const WeightRows& w, int first_row, int end_row, int n_rows,
                  std::span<const int32_t> index, const OutRows& out) {
  STRATA_CHECK(w.packing == Packing::kGguf || first_row % quant::kTileRows == 0);
  DotArgs a{};
  a.w = reinterpret_cast<const uint8_t*>(w.data);
  a.w_row_bytes = w.row_bytes;
  a.tiles = w.packing == Packing::kTiles;
  a.first_row = first_row;
  a.end_row = end_row;
  a.cols = w.cols;
  a.x_index = index.empty() ? nullptr : index.data();
  a.n_rows = index.empty() ? n_rows : static_cast<int>(index.size());
  a.y = out.y;
  a.y_stride = out.stride;
  a.y_index = out.row;
  a.grids = &grids();
  return a;
}

bool crossed(const DotTable& table, quant::Type type) {
  const auto id = static_cast<uint32_t>(type);
  return id < DotTable::kTypes && table.crossed[id];
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
          nullptr,
          reinterpret_cast<float*>(scale),
          reinterpret_cast<int16_t*>(sums),
          n_rows,
          cols,
          block};
}

bool takes_crossed(quant::Type type) {
  return std::ranges::any_of(tables(), [&](const DotTable* t) { return crossed(*t, type); });
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
      int8_t* crossed = out.crossed != nullptr ? out.crossed + r * out.cols : nullptr;
      table->quantize(row, out.cols, out.block, q, crossed, scale, sums);
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
  const DotTable* table = dot_table();
  a.q = table != nullptr && crossed(*table, w.type) ? x.crossed : x.q;
  STRATA_CHECK(a.q != nullptr);
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
