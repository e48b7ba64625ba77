#include "strata/cli/bandwidth.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "strata/base/cpu_features.h"
#include "strata/base/random_bits.h"

namespace strata::cli {
namespace {

class AtFeatures {
 public:
  explicit AtFeatures(const CpuFeatures& features) : before_(cpu_features()) {
    set_cpu_features(features);
  }
  ~AtFeatures() { set_cpu_features(before_); }
  AtFeatures(const AtFeatures&) = delete;
  AtFeatures& operator=(const AtFeatures&) = delete;

 private:
  CpuFeatures before_;
};

TEST(Bandwidth, EveryWordIsReadAtEveryLevel) {
  struct alignas(64) Line {
    uint64_t words[64];
  };
  std::vector<Line> memory(40);
  uint64_t expected = 0;
  for (size_t i = 0; i < 40 * 64; ++i) {
    expected ^= memory[i / 64].words[i % 64] = random_bits(3, i);
  }
  const CpuFeatures found = detect_cpu_features();
  for (const CpuLevel level : {CpuLevel::kBaseline, CpuLevel::kAvx2, CpuLevel::kAvx512}) {
    if (found.level() < level) continue;
    const AtFeatures at(limited(found, level));
    const auto* bytes = reinterpret_cast<const std::byte*>(memory.data());
    EXPECT_EQ(read_through(bytes, 40 * sizeof(Line)), expected) << name(level);
    EXPECT_EQ(read_through(bytes, 0), 0u);
  }
}

TEST(Bandwidth, IsThatOfAMemory) {
  ThreadPool pool(2);
  const Bandwidth result = measure_bandwidth(pool, Bytes{64} << 20);
  EXPECT_EQ(result.read, Bytes{64} << 20);
  EXPECT_GT(result.bytes_per_s, 1e8);
  EXPECT_LT(result.bytes_per_s, 1e13);
}

}  // namespace
}  // namespace strata::cli
