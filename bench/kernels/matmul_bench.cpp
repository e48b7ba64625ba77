// Matrix products: bytes of weights a second, by table, type and rows of activations. Each
// case is checked against quant/canonical.h before it is timed. A case reads `kWeightBytes` of
// weights, more than the caches hold, so one row is bound by the memory.
//   matmul_bench --benchmark_filter='AVX-512/Q4_K'
#include <benchmark/benchmark.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "strata/kernels/cpu/matmul.h"
#include "strata/quant/canonical.h"

namespace strata::kernels::cpu {
namespace {

constexpr int kCols = 2560;
constexpr size_t kWeightBytes = size_t{256} << 20;
constexpr size_t kPromptBytes = size_t{2}
                                << 20;  // about an expert: the work, not the memory, counts
constexpr size_t kAlign = 64;

struct Buffer {
  explicit Buffer(size_t n) : bytes(n + kAlign) {}
  std::byte* data() {
    const auto address = reinterpret_cast<uintptr_t>(bytes.data());
    return bytes.data() + (kAlign - address % kAlign) % kAlign;
  }
  std::vector<std::byte> bytes;
};

struct Case {
  Case(const quant::TypeTraits& type, int n, size_t weight_bytes)
      : t(type),
        n_rows(n),
        row_bytes(quant::row_bytes(t.type, kCols)),
        weight_rows(static_cast<int>(weight_bytes / row_bytes)),
        w(static_cast<size_t>(weight_rows) * row_bytes),
        x(static_cast<size_t>(n) * kCols),
        y(static_cast<size_t>(n) * static_cast<size_t>(weight_rows)),
        scratch(quant_rows_bytes(n, kCols, 32)) {
    std::mt19937_64 rng(1);
    for (size_t i = 0; i + 8 <= w.bytes.size(); i += 8) {
      // Bytes without the two upper bits of an exponent: no scale is infinite or NaN.
      const uint64_t bits = rng() & 0xBFBFBFBFBFBFBFBFu;
      std::memcpy(&w.bytes[i], &bits, 8);
    }
    std::normal_distribution<float> normal;
    for (float& v : x) v = normal(rng);
    if (t.type_class == quant::TypeClass::kQuantised) {
      q = place_quant_rows(n, kCols, t.activation_block, scratch.data());
    }
  }

  void run() {
    const WeightRows weight{w.data(), t.type, row_bytes, kCols};
    const OutRows out{y.data(), weight_rows, nullptr};
    if (t.type_class == quant::TypeClass::kFloat) {
      matmul_float(weight, 0, weight_rows, {x.data(), kCols, n_rows}, {}, out);
    } else {
      quantize_rows(x.data(), kCols, 0, n_rows, q);
      matmul(weight, 0, weight_rows, q, {}, out);
    }
  }

  bool check() {
    run();
    std::vector<float> decoded(kCols);
    for (int i = 0; i < n_rows; i += 5) {
      const float* xi = x.data() + static_cast<size_t>(i) * kCols;
      quant::QuantRow plain;
      if (q.block != 0) plain = quant::quantize_row(xi, kCols, q.block);
      for (int o = 0; o < weight_rows; o += weight_rows / 7) {
        const std::byte* row = w.data() + static_cast<size_t>(o) * row_bytes;
        float truth = 0;
        if (q.block != 0) {
          truth = quant::dot_canonical(t.type, row, kCols, plain);
        } else {
          t.decode_floats(row, kCols, decoded.data());
          truth = quant::dot_float(decoded.data(), xi, kCols);
        }
        const float got =
            y[static_cast<size_t>(i) * static_cast<size_t>(weight_rows) + static_cast<size_t>(o)];
        const bool both_nan = std::isnan(got) && std::isnan(truth);
        if (!both_nan && std::bit_cast<uint32_t>(got) != std::bit_cast<uint32_t>(truth)) {
          return false;
        }
      }
    }
    return true;
  }

  const quant::TypeTraits& t;
  int n_rows;
  size_t row_bytes;
  int weight_rows;
  Buffer w;
  std::vector<float> x, y;
  Buffer scratch;
  QuantRows q;
};

void bench_matmul(benchmark::State& state, const DotTable* table, const quant::TypeTraits& t,
                  int n_rows) {
  use_dot_table(table);
  Case c(t, n_rows, n_rows < 16 ? kWeightBytes : kPromptBytes);
  if (!c.check()) {
    state.SkipWithError("differs from the canonical form");
    return;
  }
  for (auto _ : state) c.run();
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(c.w.bytes.size()));
  state.counters["GMAC/s"] =
      benchmark::Counter(static_cast<double>(c.weight_rows) * kCols * n_rows *
                             static_cast<double>(state.iterations()) * 1e-9,
                         benchmark::Counter::kIsRate);
}

// What one thread can read at most.
void bench_read(benchmark::State& state) {
  Buffer buffer(kWeightBytes);
  for (std::byte& b : buffer.bytes) b = std::byte{1};
  for (auto _ : state) {
    uint64_t sum[8] = {};
    const auto* p = reinterpret_cast<const uint64_t*>(buffer.data());
    for (size_t i = 0; i < kWeightBytes / 8; i += 8) {
      for (size_t k = 0; k < 8; ++k) sum[k] |= p[i + k];
    }
    for (uint64_t s : sum) benchmark::DoNotOptimize(s);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(kWeightBytes));
}

void add_all() {
  benchmark::RegisterBenchmark("read", bench_read)->Unit(benchmark::kMillisecond);
  for (const DotTable* table : dot_tables()) {
    for (const quant::TypeTraits& t : quant::all_types()) {
      if (t.type_class == quant::TypeClass::kPlain) continue;
      if (table->matmul[static_cast<uint32_t>(t.type)] == nullptr) continue;
      for (const int n_rows : {1, 2, 4, 8, 64}) {
        const std::string name =
            std::string(table->name) + "/" + std::string(t.name) + "/" + std::to_string(n_rows);
        benchmark::RegisterBenchmark(name.c_str(), [=, &t](benchmark::State& state) {
          bench_matmul(state, table, t, n_rows);
        })->Unit(benchmark::kMillisecond);
      }
    }
  }
}

}  // namespace
}  // namespace strata::kernels::cpu

int main(int argc, char** argv) {
  strata::kernels::cpu::add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 64;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
