#include "strata/base/cpu_features.h"

#include <gtest/gtest.h>

#include "strata/base/error.h"

namespace strata {
namespace {

// A processor with everything, under a system that saves everything.
CpuidRegisters all_of_it() {
  return {.leaf1_ecx = 1U << 12 | 1U << 27 | 1U << 28 | 1U << 29,
          .leaf7_ebx = 1U << 5 | 1U << 16 | 1U << 17 | 1U << 30 | 1U << 31,
          .leaf7_ecx = 1U << 1 | 1U << 11,
          .leaf7_1_eax = 1U << 4,
          .xcr0 = 0xe7};
}

TEST(CpuFeatures, Levels) {
  CpuidRegisters r = all_of_it();
  EXPECT_EQ(decode_cpu_features(r).level(), CpuLevel::kAvx512);
  EXPECT_EQ(decode_cpu_features(r).text(), "avx512 (vnni vbmi) avx_vnni");
  r.leaf7_ebx &= ~(1U << 30);  // no BW
  EXPECT_EQ(decode_cpu_features(r).text(), "avx2 avx_vnni");
  r.leaf1_ecx &= ~(1U << 12);  // no FMA
  EXPECT_EQ(decode_cpu_features(r), CpuFeatures{});
  EXPECT_EQ(decode_cpu_features(CpuidRegisters{}).level(), CpuLevel::kBaseline);
}

TEST(CpuFeatures, WhatTheSystemDoesNotSaveIsNotThere) {
  CpuidRegisters r = all_of_it();
  r.xcr0 = 0x7;  // YMM, no ZMM
  EXPECT_EQ(decode_cpu_features(r).text(), "avx2 avx_vnni");
  r.xcr0 = 0xe3;  // ZMM without YMM: nonsense, so nothing
  EXPECT_EQ(decode_cpu_features(r), CpuFeatures{});
  r.xcr0 = 0xe7;
  r.leaf1_ecx &= ~(1U << 27);  // no OSXSAVE
  EXPECT_EQ(decode_cpu_features(r), CpuFeatures{});
}

TEST(CpuFeatures, LimitsAreHonouredOrRefused) {
  const CpuFeatures all = decode_cpu_features(all_of_it());
  EXPECT_EQ(limited(all, CpuLevel::kAvx512), all);
  EXPECT_EQ(limited(all, CpuLevel::kAvx2).text(), "avx2 avx_vnni");
  EXPECT_EQ(limited(all, CpuLevel::kBaseline), CpuFeatures{});
  try {
    limited(CpuFeatures{.avx2 = true}, CpuLevel::kAvx512);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUnsupported);
    EXPECT_STREQ(e.what(), "this processor has no avx512: it reaches avx2");
  }
}

TEST(CpuFeatures, WordsAndLevels) {
  CpuLevel level = CpuLevel::kBaseline;
  EXPECT_TRUE(parse_cpu_level("avx512", level));
  EXPECT_EQ(level, CpuLevel::kAvx512);
  EXPECT_TRUE(parse_cpu_level("baseline", level));
  EXPECT_EQ(level, CpuLevel::kBaseline);
  EXPECT_FALSE(parse_cpu_level("avx", level));
}

#if defined(__x86_64__)
// The compiler's own detection is an independent witness.
TEST(CpuFeatures, ThisProcessor) {
  const CpuFeatures f = detect_cpu_features();
  // F16C is no word that clang 14 knows; AVX2 never came without it.
  EXPECT_EQ(f.avx2, __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(f.avx512,
            __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0);
  EXPECT_EQ(f.avx512_vnni, __builtin_cpu_supports("avx512vnni") != 0);
  EXPECT_EQ(f.avx512_vbmi, __builtin_cpu_supports("avx512vbmi") != 0);
}
#endif

TEST(CpuFeatures, TheProcessKeepsWhatWasSet) {
  const CpuFeatures before = cpu_features();
  EXPECT_EQ(before, detect_cpu_features());
  set_cpu_features(CpuFeatures{});
  EXPECT_EQ(cpu_features().level(), CpuLevel::kBaseline);
  set_cpu_features(before);
}

}  // namespace
}  // namespace strata
