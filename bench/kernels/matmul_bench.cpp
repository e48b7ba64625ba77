// Matrix products by table, type, columns, packing, rows of activations and threads. Each case is
// checked against quant/canonical.h before it is timed. Counters, medians over the rounds:
//   GB/s    weights read by the kernel
//   read    the same bytes only read, by as many threads
//   share   of the first in the second, round by round
//   GMAC/s  products
// A round reads the weights in two ways and then multiplies them, so that all three see the same
// moment of a shared machine; the faster reading counts. How a loop of loads is written changes
// what it reaches by a quarter, and a slow one would flatter the kernels. A case with few rows
// reads kWeightBytes, more than the caches hold; one with many an expert, from the caches: it has
// no share.
//   matmul_bench --benchmark_filter='VBMI/Q4_K/2560/tiles'
#include <benchmark/benchmark.h>
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "strata/base/cpu_features.h"
#include "strata/base/thread_pool.h"
#include "strata/kernels/cpu/matmul.h"
#include "strata/quant/canonical.h"
#include "strata/quant/tiles.h"

namespace strata::kernels::cpu {
namespace {

constexpr size_t kWeightBytes = size_t{256} << 20;
constexpr size_t kPromptBytes = size_t{2} << 20;
constexpr int kPiece = 64;  // weight rows a call, as the engine's loops have
constexpr size_t kAlign = 64;

struct Buffer {
  explicit Buffer(size_t n) : bytes(n + kAlign) {}
  std::byte* data() {
    const auto address = reinterpret_cast<uintptr_t>(bytes.data());
    return bytes.data() + (kAlign - address % kAlign) % kAlign;
  }
  std::vector<std::byte> bytes;
};

struct Shape {
  int cols, n_rows;
  Packing packing;
};

struct Case {
  Case(const quant::TypeTraits& type, const Shape& s)
      : t(type),
        cols(s.cols),
        n_rows(s.n_rows),
        row_bytes(quant::row_bytes(t.type, static_cast<uint64_t>(cols))),
        weight_rows(static_cast<int>((n_rows < 16 ? kWeightBytes : kPromptBytes) / row_bytes) /
                    kPiece * kPiece),
        w(static_cast<size_t>(weight_rows) * row_bytes),
        x(static_cast<size_t>(n_rows) * static_cast<size_t>(cols)),
        y(static_cast<size_t>(n_rows) * static_cast<size_t>(weight_rows)),
        crossed(x.size()),
        scratch(quant_rows_bytes(n_rows, cols, 32)) {
    // Any bytes are blocks, as rows and as tiles; those without the two upper bits of an exponent
    // have no scale that is infinite or NaN.
    std::mt19937_64 rng(1);
    for (size_t i = 0; i + 8 <= w.bytes.size(); i += 8) {
      const uint64_t bits = rng() & 0xBFBFBFBFBFBFBFBFu;
      std::memcpy(&w.bytes[i], &bits, 8);
    }
    std::normal_distribution<float> normal;
    for (float& v : x) v = normal(rng);
    if (t.type_class == quant::TypeClass::kQuantised) {
      q = place_quant_rows(n_rows, cols, t.activation_block, scratch.data());
      if (takes_crossed(t.type)) q.crossed = crossed.data();
    }
    weight = {w.data(), t.type, row_bytes, cols, s.packing};
  }

  void run(ThreadPool& pool) {
    const OutRows out{y.data(), weight_rows, nullptr};
    if (q.block != 0) quantize_rows(x.data(), cols, 0, n_rows, q);
    pool.parallel_for(weight_rows / kPiece, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int first = static_cast<int>(i) * kPiece;
        if (q.block != 0) {
          matmul(weight, first, first + kPiece, q, {}, out);
        } else {
          matmul_float(weight, first, first + kPiece, {x.data(), cols, n_rows}, {}, out);
        }
      }
    });
  }

  bool check() {
    std::vector<std::byte> row(row_bytes);
    std::vector<float> decoded(static_cast<size_t>(cols));
    for (int i = 0; i < n_rows; i += 5) {
      const float* xi = x.data() + static_cast<size_t>(i) * static_cast<size_t>(cols);
      quant::QuantRow plain;
      if (q.block != 0) plain = quant::quantize_row(xi, cols, q.block);
      for (int o = 0; o < weight_rows; o += std::max(1, weight_rows / 7)) {
        const int in_tile = weight.packing == Packing::kTiles ? o % quant::kTileRows : 0;
        const std::byte* at = w.data() + static_cast<size_t>(o - in_tile) * row_bytes;
        if (weight.packing == Packing::kTiles) {
          quant::row_of_tile(t.type, cols, at, in_tile, row.data());
        } else {
          std::memcpy(row.data(), at, row_bytes);
        }
        float truth = 0;
        if (q.block != 0) {
          truth = quant::dot_canonical(t.type, row.data(), cols, plain);
        } else {
          t.decode_floats(row.data(), decoded.size(), decoded.data());
          truth = quant::dot_float(decoded.data(), xi, cols);
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
  int cols, n_rows;
  size_t row_bytes;
  int weight_rows;
  Buffer w;
  std::vector<float> x, y;
  std::vector<int8_t> crossed;
  Buffer scratch;
  QuantRows q;
  WeightRows weight;
};

// Reads n bytes with loads of a register's width, `lines` cache lines a step, asking for what lies
// `ahead` bytes further if that is not 0. n is a multiple of 64 * lines.
template <int lines, int ahead>
__attribute__((target("avx512f"))) uint64_t read_avx512(const std::byte* p, size_t n) {
  __m512i sum[8] = {};
  for (const std::byte* end = p + n; p != end; p += 64 * lines) {
#pragma GCC unroll 64
    for (int i = 0; i < lines; ++i) {
      if (ahead != 0) asm volatile("prefetcht0 %0" ::"m"(p[64 * i + ahead]));
      sum[i % 8] = _mm512_xor_si512(sum[i % 8], _mm512_loadu_si512(p + 64 * i));
    }
  }
  for (int i = 1; i < 8; ++i) sum[0] = _mm512_xor_si512(sum[0], sum[i]);
  alignas(64) uint64_t words[8];
  _mm512_store_si512(words, sum[0]);
  return words[0] ^ words[7];
}
template <int lines, int ahead>
__attribute__((target("avx2"))) uint64_t read_avx2(const std::byte* p, size_t n) {
  __m256i sum[8] = {};
  for (const std::byte* end = p + n; p != end; p += 64 * lines) {
#pragma GCC unroll 64
    for (int i = 0; i < 2 * lines; ++i) {
      if (ahead != 0 && i % 2 == 0) asm volatile("prefetcht0 %0" ::"m"(p[32 * i + ahead]));
      const auto* at = reinterpret_cast<const __m256i*>(p + 32 * i);
      sum[i % 8] = _mm256_xor_si256(sum[i % 8], _mm256_loadu_si256(at));
    }
  }
  for (int i = 1; i < 8; ++i) sum[0] = _mm256_xor_si256(sum[0], sum[i]);
  alignas(32) uint64_t words[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(words), sum[0]);
  return words[0] ^ words[3];
}

using Read = uint64_t (*)(const std::byte*, size_t);
std::vector<Read> reads() {
  if (cpu_features().avx512) return {read_avx512<16, 0>, read_avx512<64, 8192>};
  return {read_avx2<16, 0>, read_avx2<64, 8192>};
}

double seconds(const auto& work) {
  const auto begun = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begun;
  return time.count();
}

double read_seconds(ThreadPool& pool, const Read& read, const std::byte* from, size_t n) {
  constexpr size_t kChunk = size_t{1} << 20;
  return seconds([&] {
           pool.parallel_for(static_cast<int64_t>(n / kChunk), 1, [&](int64_t begin, int64_t end) {
             for (int64_t i = begin; i < end; ++i) {
               benchmark::DoNotOptimize(read(from + static_cast<size_t>(i) * kChunk, kChunk));
             }
           });
         }) /
         static_cast<double>(n / kChunk * kChunk) * static_cast<double>(n);
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

void bench_matmul(benchmark::State& state, const DotTable* table, const quant::TypeTraits& t,
                  const Shape& shape, int n_threads) {
  use_dot_table(table);
  ThreadPool pool(n_threads);
  Case c(t, shape);
  c.run(pool);
  if (!c.check()) {
    state.SkipWithError("differs from the canonical form");
    return;
  }
  const size_t n = c.row_bytes * static_cast<size_t>(c.weight_rows);
  const bool from_memory = n > kWeightBytes / 2;
  std::vector<double> product, read, share;
  for (auto _ : state) {
    if (from_memory) {
      double best = INFINITY;
      for (const Read& each : reads()) {
        best = std::min(best, read_seconds(pool, each, c.w.data(), n));
      }
      read.push_back(best);
    }
    product.push_back(seconds([&] { c.run(pool); }));
    state.SetIterationTime(product.back());
    if (from_memory) share.push_back(read.back() / product.back());
  }
  const double time = median(product);
  state.counters["GMAC/s"] = 1e-9 / time * c.weight_rows * shape.cols * shape.n_rows;
  if (!from_memory) return;
  state.counters["GB/s"] = static_cast<double>(n) / time * 1e-9;
  state.counters["read"] = static_cast<double>(n) / median(read) * 1e-9;
  state.counters["share"] = median(share);
}

void add_case(const DotTable* table, const quant::TypeTraits& t, const Shape& s, int n_threads) {
  const std::string name = std::string(table->name) + "/" + std::string(t.name) + "/" +
                           std::to_string(s.cols) + "/" +
                           (s.packing == Packing::kTiles ? "tiles" : "rows") + "/" +
                           std::to_string(s.n_rows) + "/threads:" + std::to_string(n_threads);
  benchmark::RegisterBenchmark(
      name.c_str(),
      [=, &t](benchmark::State& state) { bench_matmul(state, table, t, s, n_threads); })
      ->Unit(benchmark::kMillisecond)
      ->UseManualTime();
}

void add_all() {
  const int all = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  for (const DotTable* table : dot_tables()) {
    for (const quant::TypeTraits& t : quant::all_types()) {
      if (t.type_class == quant::TypeClass::kPlain) continue;
      if (table->matmul[static_cast<uint32_t>(t.type)] == nullptr) continue;
      for (const int cols : {2560, 640}) {
        if (cols % t.block_values != 0) continue;
        for (const Packing packing : {Packing::kTiles, Packing::kGguf}) {
          if (packing == Packing::kTiles && !quant::tile_form(t.type)) continue;
          for (const int n_rows : {1, 2, 4, 8, 64}) {
            add_case(table, t, {cols, n_rows, packing}, 1);
            if (n_rows == 1 && all > 1) add_case(table, t, {cols, n_rows, packing}, all);
          }
        }
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
