#include "strata/cli/bandwidth.h"

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>

#include "strata/base/cpu_features.h"
#include "strata/base/os/memory.h"

namespace strata::cli {
namespace {

constexpr int kRuns = 5;
constexpr Bytes kChunk = Bytes{2} << 20;
constexpr Bytes kLine = 512;  // eight registers of 64 bytes

// The attribute holds for these functions alone: nothing shared can be kept in a form that an older
// processor does not know.
__attribute__((target("avx512f"))) uint64_t read_avx512(const std::byte* from, Bytes n) {
  __m512i sum[8] = {};
  for (const std::byte* end = from + n; from != end; from += kLine) {
    for (int i = 0; i < 8; ++i) {
      sum[i] = _mm512_xor_si512(sum[i], _mm512_load_si512(from + 64 * i));
    }
  }
  for (int i = 1; i < 8; ++i) sum[0] = _mm512_xor_si512(sum[0], sum[i]);
  alignas(64) uint64_t words[8];
  _mm512_store_si512(words, sum[0]);
  return words[0] ^ words[1] ^ words[2] ^ words[3] ^ words[4] ^ words[5] ^ words[6] ^ words[7];
}

__attribute__((target("avx2"))) uint64_t read_avx2(const std::byte* from, Bytes n) {
  __m256i sum[8] = {};
  for (const std::byte* end = from + n; from != end; from += kLine / 2) {
    for (int i = 0; i < 8; ++i) {
      const auto* at = reinterpret_cast<const __m256i*>(from + 32 * i);
      sum[i] = _mm256_xor_si256(sum[i], _mm256_load_si256(at));
    }
  }
  for (int i = 1; i < 8; ++i) sum[0] = _mm256_xor_si256(sum[0], sum[i]);
  alignas(32) uint64_t words[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(words), sum[0]);
  return words[0] ^ words[1] ^ words[2] ^ words[3];
}

uint64_t read_plain(const std::byte* from, Bytes n) {
  uint64_t sum[8] = {};
  for (const std::byte* end = from + n; from != end; from += sizeof sum) {
    uint64_t words[8];
    std::memcpy(words, from, sizeof words);
    for (int i = 0; i < 8; ++i) sum[i] ^= words[i];
  }
  return sum[0] ^ sum[1] ^ sum[2] ^ sum[3] ^ sum[4] ^ sum[5] ^ sum[6] ^ sum[7];
}

struct Aligned {
  void operator()(std::byte* memory) const {
    ::operator delete[](memory, std::align_val_t(kChunk));
  }
};

}  // namespace

uint64_t read_through(const std::byte* from, Bytes n) {
  const CpuFeatures& cpu = cpu_features();
  if (cpu.avx512) return read_avx512(from, n);
  return cpu.avx2 ? read_avx2(from, n) : read_plain(from, n);
}

Bandwidth measure_bandwidth(ThreadPool& pool, Bytes wanted) {
  const Bytes available = os::memory_budget().available;
  const Bytes bytes = (available > 0 ? std::min(wanted, available / 4) : wanted) / kChunk * kChunk;
  if (bytes < std::min(wanted, kLeastBytes) || bytes == 0) return {};
  const std::unique_ptr<std::byte[], Aligned> memory(new (std::align_val_t(kChunk), std::nothrow)
                                                         std::byte[bytes]);
  if (!memory) return {};

  // Each thread touches first what it will read.
  const Loop loop{.n_items = static_cast<int64_t>(bytes / kChunk),
                  .ns_per_item = 50'000,
                  .share = Loop::Share::kOwnFirst};
  const auto chunks = [&](auto&& each) {
    pool.parallel_for(loop, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) each(memory.get() + static_cast<Bytes>(i) * kChunk);
    });
  };
  chunks([](std::byte* chunk) { std::memset(chunk, 1, kChunk); });

  std::atomic<uint64_t> sum = 0;  // used, so that the reading is not thrown away
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    const auto begun = std::chrono::steady_clock::now();
    chunks([&](const std::byte* chunk) { sum ^= read_through(chunk, kChunk); });
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begun;
    best = std::max(best, static_cast<double>(bytes) / time.count());
  }
  return {.bytes_per_s = best, .read = sum == 0 ? bytes : 0};
}

}  // namespace strata::cli
