#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace strata {

// The vector levels that kernels are written for, each containing the one before.
enum class CpuLevel : uint8_t { kBaseline, kAvx2, kAvx512 };
std::string_view name(CpuLevel level);  // "baseline", "avx2", "avx512"
// False if the word is none of these.
bool parse_cpu_level(std::string_view word, CpuLevel& level);

// What the processor has and the operating system saves on a context switch.
struct CpuFeatures {
  bool avx2 = false;         // AVX2, FMA and F16C: no processor for sale lacked one of the three
  bool avx512 = false;       // F, BW, DQ, VL
  bool avx512_vnni = false;  // 8-bit dot products
  bool avx512_vbmi = false;  // byte permutes: table look-ups of 64 and 128 entries
  bool avx_vnni = false;     // the dot products for 256 bits without AVX-512

  CpuLevel level() const;
  std::string text() const;  // "avx512 (vnni vbmi) avx_vnni"
  bool operator==(const CpuFeatures&) const = default;
};

// The registers that tell, for tests to invent.
struct CpuidRegisters {
  uint32_t leaf1_ecx = 0, leaf7_ebx = 0, leaf7_ecx = 0, leaf7_1_eax = 0;
  uint64_t xcr0 = 0;  // 0 without OSXSAVE
};
CpuFeatures decode_cpu_features(const CpuidRegisters& registers);
CpuFeatures detect_cpu_features();

// At most that level. Errors: kUnsupported if the processor does not reach it: an AVX-512 test that
// ran AVX2 code would prove nothing.
CpuFeatures limited(const CpuFeatures& features, CpuLevel level);

// Those of this process: detected at the first call, unless set before. Set while no kernel runs.
const CpuFeatures& cpu_features();
void set_cpu_features(const CpuFeatures& features);

}  // namespace strata
