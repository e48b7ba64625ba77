#include "strata/base/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "strata/base/error.h"
#include "strata/base/format.h"

namespace strata {
namespace {

constexpr bool bit(uint64_t word, int n) { return ((word >> n) & 1) != 0; }

// Bits of XCR0: what the system saves.
constexpr uint64_t kYmm = 0x6;   // SSE and AVX
constexpr uint64_t kZmm = 0xe6;  // and opmask, upper halves of ZMM0-15, ZMM16-31

CpuFeatures& process_features() {
  static CpuFeatures features = detect_cpu_features();
  return features;
}

}  // namespace

std::string_view name(CpuLevel level) {
  switch (level) {
    case CpuLevel::kBaseline:
      return "baseline";
    case CpuLevel::kAvx2:
      return "avx2";
    case CpuLevel::kAvx512:
      return "avx512";
  }
  return "?";
}

bool parse_cpu_level(std::string_view word, CpuLevel& level) {
  for (const CpuLevel each : {CpuLevel::kBaseline, CpuLevel::kAvx2, CpuLevel::kAvx512}) {
    if (name(each) == word) {
      level = each;
      return true;
    }
  }
  return false;
}

CpuLevel CpuFeatures::level() const {
  if (avx512) return CpuLevel::kAvx512;
  return avx2 ? CpuLevel::kAvx2 : CpuLevel::kBaseline;
}

std::string CpuFeatures::text() const {
  std::string text(name(level()));
  if (avx512_vnni && avx512_vbmi) {
    text += " (vnni vbmi)";
  } else if (avx512_vnni || avx512_vbmi) {
    text += avx512_vnni ? " (vnni)" : " (vbmi)";
  }
  if (avx_vnni) text += " avx_vnni";
  return text;
}

// Bit numbers: Intel SDM volume 2, CPUID; the rule for XCR0: volume 1, 14.3 and 15.2.
CpuFeatures decode_cpu_features(const CpuidRegisters& r) {
  CpuFeatures f;
  const bool os_ymm = bit(r.leaf1_ecx, 27) && (r.xcr0 & kYmm) == kYmm;
  const bool os_zmm = os_ymm && (r.xcr0 & kZmm) == kZmm;
  const bool fma = bit(r.leaf1_ecx, 12);
  const bool avx = bit(r.leaf1_ecx, 28);
  const bool f16c = bit(r.leaf1_ecx, 29);
  f.avx2 = os_ymm && avx && fma && f16c && bit(r.leaf7_ebx, 5);
  const bool f_dq_bw_vl =
      bit(r.leaf7_ebx, 16) && bit(r.leaf7_ebx, 17) && bit(r.leaf7_ebx, 30) && bit(r.leaf7_ebx, 31);
  f.avx512 = f.avx2 && os_zmm && f_dq_bw_vl;
  f.avx512_vbmi = f.avx512 && bit(r.leaf7_ecx, 1);
  f.avx512_vnni = f.avx512 && bit(r.leaf7_ecx, 11);
  f.avx_vnni = f.avx2 && bit(r.leaf7_1_eax, 4);
  return f;
}

CpuFeatures detect_cpu_features() {
  CpuidRegisters r;
#if defined(__x86_64__)
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0) r.leaf1_ecx = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    r.leaf7_ebx = ebx;
    r.leaf7_ecx = ecx;
    const uint32_t last_subleaf = eax;
    if (last_subleaf >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0) {
      r.leaf7_1_eax = eax;
    }
  }
  if (bit(r.leaf1_ecx, 27)) {
    // The instruction by name: its intrinsic would need -mxsave for this whole file.
    uint32_t low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    r.xcr0 = uint64_t{high} << 32 | low;
  }
#endif
  return decode_cpu_features(r);
}

CpuFeatures limited(const CpuFeatures& features, CpuLevel level) {
  if (level > features.level()) {
    throw Error(ErrorCode::kUnsupported, format("this processor has no {}: it reaches {}",
                                                name(level), name(features.level())));
  }
  CpuFeatures f = features;
  if (level < CpuLevel::kAvx512) f.avx512 = f.avx512_vnni = f.avx512_vbmi = false;
  if (level < CpuLevel::kAvx2) f.avx2 = f.avx_vnni = false;
  return f;
}

const CpuFeatures& cpu_features() { return process_features(); }

void set_cpu_features(const CpuFeatures& features) { process_features() = features; }

}  // namespace strata
