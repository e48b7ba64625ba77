#pragma once

#include "strata/kernels/gpu/blocks.cuh"
#include "strata/kernels/gpu/grids.cuh"
#include "strata/quant/types.h"

// The quantised types as kernels take them apart: the canonical terms of quant/term.h, 16 values
// under one scale at a time. The layouts stand in quant/blocks32.cpp, k_quants.cpp, iq_grids.cpp,
// low_bits.cpp and fp4.cpp.
//
// Of each type:
//   kBytes, kValues         of a block
//   kHalves, kHalvesAt      its f16 scales (or two bytes like one) and where they stand
//   kWords, kWordsAt        the rest
//   kBlock                  values of an activation block, 32 or 256
//   kParts                  pieces of an activation block that threads share (kBlock 256), else the
//                           activation blocks of one weight block
//   kBias                   taken from every code: sum scale (code - kBias) q
//   kMin                    has a min
//   kTerms                  terms of an activation block; 2 of NVFP4, else 1
//   each(block, part, use)  calls use(i, code, scale, min) for the 16 values i of the activation
//                           block; code are four words of signed bytes
//   d(block, term), dmin(block)
namespace strata::kernels::gpu {

struct Code {
  uint32_t w[4];
};

// ---- 32 values ----

template <int kBytesOf, int kHalvesOf>
struct Blocks32 {
  static constexpr int kBytes = kBytesOf, kValues = 32, kBlock = 32, kParts = 1, kTerms = 1;
  static constexpr int kHalves = kHalvesOf, kHalvesAt = 0, kWordsAt = 2 * kHalvesOf;
  static constexpr int kWords = (kBytesOf - 2 * kHalvesOf) / 4, kBias = 0;
  static constexpr bool kMin = false;
  template <class B>
  STRATA_MEMBER static float d(const B& b, int) {
    return load_half(b.half(0));
  }
  template <class B>
  STRATA_MEMBER static float dmin(const B& b) {
    return -load_half(b.half(1));  // "+ m" as the min of the general form
  }
};

struct Q4_0 : Blocks32<18, 1> {
  static constexpr int kBias = 8;
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int, const Use& use) {
    Code low, high;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t w = b.word(i);
      low.w[i] = w & 0x0f0f0f0fU;
      high.w[i] = (w >> 4) & 0x0f0f0f0fU;
    }
    use(0, low, 1, 0);
    use(1, high, 1, 0);
  }
};
struct Q4_1 : Blocks32<20, 2> {
  static constexpr bool kMin = true;
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int, const Use& use) {
    Q4_0::each(b, 0, [&](int i, const Code& code, int, int) { use(i, code, 1, 1); });
  }
};
// The fifth bits stand in the first word.
struct Q5_0 : Blocks32<22, 1> {
  static constexpr int kBias = 16;
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int, const Use& use) {
    const uint32_t fifth = b.word(0);
    Code low, high;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t w = b.word(1 + i);
      low.w[i] = (w & 0x0f0f0f0fU) | spread_bits(fifth >> (4 * i)) << 4;
      high.w[i] = ((w >> 4) & 0x0f0f0f0fU) | spread_bits(fifth >> (16 + 4 * i)) << 4;
    }
    use(0, low, 1, 0);
    use(1, high, 1, 0);
  }
};
struct Q5_1 : Blocks32<24, 2> {
  static constexpr bool kMin = true;
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int, const Use& use) {
    Q5_0::each(b, 0, [&](int i, const Code& code, int, int) { use(i, code, 1, 1); });
  }
};
struct Q8_0 : Blocks32<34, 1> {
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int, const Use& use) {
    Code code[2];
#pragma unroll
    for (int i = 0; i < 8; ++i) code[i / 4].w[i % 4] = b.word(i);
    use(0, code[0], 1, 0);
    use(1, code[1], 1, 0);
  }
};
struct IQ4_NL : Blocks32<18, 1> {
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int, const Use& use) {
    Code low, high;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Looked v = look_up<kNonLinearTable>(b.word(i));
      low.w[i] = v.low;
      high.w[i] = v.high;
    }
    use(0, low, 1, 0);
    use(1, high, 1, 0);
  }
};
struct MXFP4 : Blocks32<17, 0> {
  static constexpr int kWordsAt = 1;
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int, const Use& use) {
    Code low, high;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Looked v = look_up<kFp4Table>(b.word(i));
      low.w[i] = v.low;
      high.w[i] = v.high;
    }
    use(0, low, 1, 0);
    use(1, high, 1, 0);
  }
  template <class B>
  STRATA_MEMBER static float d(const B& b, int) {
    const uint32_t e = b.halves[0];  // half of 2^(e - 127)
    return bits_to_float(e < 2 ? 0x200000U << e : (e - 1U) << 23);
  }
};

// ---- longer blocks whose terms have 32 values or 16 ----

struct Q1_0 : Blocks32<18, 1> {
  static constexpr int kValues = 128, kParts = 4, kBias = 1;
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int part, const Use& use) {
    const uint32_t bits = b.word(part);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Code code;
#pragma unroll
      for (int i = 0; i < 4; ++i) code.w[i] = 2 * spread_bits(bits >> (16 * half + 4 * i));
      use(half, code, 1, 0);
    }
  }
};
struct Q2_0 : Blocks32<18, 1> {
  static constexpr int kValues = 64, kParts = 2, kBias = 1;
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int part, const Use& use) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t w = b.word(2 * part + half);
      Code code;
#pragma unroll
      for (int i = 0; i < 4; ++i) code.w[i] = spread_pairs(byte_of(w, i));
      use(half, code, 1, 0);
    }
  }
};
// Each 16 values are a term with a scale of its own: four bytes in front.
struct NVFP4 : Blocks32<36, 0> {
  static constexpr int kValues = 64, kParts = 2, kTerms = 2, kWordsAt = 4, kWords = 8;
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int part, const Use& use) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Code code;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const Looked v = look_up<kFp4Table>(b.word(4 * part + 2 * half + i));
        code.w[i] = v.low;
        code.w[2 + i] = v.high;
      }
      use(half, code, 1, 0);
    }
  }
  // term: of the weight block, 0 to 3. UE4M3, halved.
  template <class B>
  STRATA_MEMBER static float d(const B& b, int term) {
    const uint32_t x = b.halves[term], exponent = (x >> 3) & 15U, mantissa = x & 7U;
    if ((x & 127U) == 127U) return 0;
    if (exponent == 0) return 0.5f * (static_cast<float>(mantissa) * 0x1p-9f);
    return 0.5f * bits_to_float(((exponent + 120U) << 23) | (mantissa << 20));
  }
};

// ---- 256 values ----

template <int kBytesOf, int kHalvesOf, int kHalvesAtOf, int kPartsOf>
struct Blocks256 {
  static constexpr int kBytes = kBytesOf, kValues = 256, kBlock = 256, kParts = kPartsOf;
  static constexpr int kHalves = kHalvesOf, kHalvesAt = kHalvesAtOf, kTerms = 1;
  static constexpr int kWordsAt = kHalvesAtOf == 0 ? 2 * kHalvesOf : 0;
  static constexpr int kWords = (kBytesOf - 2 * kHalvesOf) / 4, kBias = 0;
  static constexpr bool kMin = false;
  template <class B>
  STRATA_MEMBER static float d(const B& b, int) {
    return load_half(b.half(0));
  }
  template <class B>
  STRATA_MEMBER static float dmin(const B& b) {
    return load_half(b.half(1));
  }
};

// Byte i of n words of a block, n known where it is used.
template <class B>
STRATA_FN uint32_t byte_at(const B& b, int first_word, int i) {
  return byte_of(b.word(first_word + i / 4), i % 4);
}

// Part: half of the block and which 16 of each 32 values.
struct Q2_K : Blocks256<84, 2, 80, 4> {
  static constexpr bool kMin = true;
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int part, const Use& use) {
    const int half = part / 2, upper = part % 2;
    uint32_t w[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) w[i] = b.word(4 + 8 * half + 4 * upper + i);
    const uint32_t scales[2] = {b.word(2 * half), b.word(2 * half + 1)};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      Code code;
#pragma unroll
      for (int i = 0; i < 4; ++i) code.w[i] = (w[i] >> (2 * k)) & 0x03030303U;
      const uint32_t s = byte_of(scales[k / 2], 2 * (k % 2) + upper);
      use(8 * half + 2 * k + upper, code, static_cast<int>(s & 15U), static_cast<int>(s >> 4));
    }
  }
};
struct Q3_K : Blocks256<110, 1, 108, 4> {
  static constexpr int kBias = 4;
  template <class B>
  STRATA_MEMBER static int scale(const B& b, int group) {
    const uint32_t low = byte_at(b, 24, group % 8) >> (4 * (group / 8)) & 15U;
    const uint32_t high = byte_at(b, 26, group % 4) >> (2 * (group / 4)) & 3U;
    return static_cast<int>(low | high << 4) - 32;
  }
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int part, const Use& use) {
    const int half = part / 2, upper = part % 2;
    uint32_t w[4], third[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      w[i] = b.word(8 + 8 * half + 4 * upper + i);
      third[i] = b.word(4 * upper + i) >> (4 * half);
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      Code code;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        code.w[i] = ((w[i] >> (2 * k)) & 0x03030303U) | ((third[i] >> k) & 0x01010101U) << 2;
      }
      const int group = 8 * half + 2 * k + upper;
      use(group, code, scale(b, group), 0);
    }
  }
};

// Q4_K, Q5_K: six bits each for scale and min of 32 values, in the first three words.
struct ScaleAndMin {
  int scale, min;
};
template <class B>
STRATA_FN ScaleAndMin scale_and_min(const B& b, int group) {
  const int i = group % 4;
  const uint32_t s0 = byte_of(b.word(0), i), s1 = byte_of(b.word(1), i), s2 = byte_of(b.word(2), i);
  if (group < 4) return {static_cast<int>(s0 & 63U), static_cast<int>(s1 & 63U)};
  return {static_cast<int>((s2 & 15U) | (s0 >> 6) << 4),
          static_cast<int>((s2 >> 4) | (s1 >> 6) << 4)};
}

// Part: a pair of groups, which share words, and which 16 of each 32 values.
struct Q4_K : Blocks256<144, 2, 0, 8> {
  static constexpr bool kMin = true;
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int part, const Use& use) {
    const int pair = part / 2, upper = part % 2;
    Code low, high;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t w = b.word(3 + 8 * pair + 4 * upper + i);
      low.w[i] = w & 0x0f0f0f0fU;
      high.w[i] = (w >> 4) & 0x0f0f0f0fU;
    }
    const ScaleAndMin first = scale_and_min(b, 2 * pair), second = scale_and_min(b, 2 * pair + 1);
    use(4 * pair + upper, low, first.scale, first.min);
    use(4 * pair + 2 + upper, high, second.scale, second.min);
  }
};
struct Q5_K : Blocks256<176, 2, 0, 8> {
  static constexpr bool kMin = true;
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int part, const Use& use) {
    const int pair = part / 2, upper = part % 2;
    Code low, high;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t w = b.word(11 + 8 * pair + 4 * upper + i);
      const uint32_t fifth = b.word(3 + 4 * upper + i) >> (2 * pair);
      low.w[i] = (w & 0x0f0f0f0fU) | (fifth & 0x01010101U) << 4;
      high.w[i] = ((w >> 4) & 0x0f0f0f0fU) | ((fifth >> 1) & 0x01010101U) << 4;
    }
    const ScaleAndMin first = scale_and_min(b, 2 * pair), second = scale_and_min(b, 2 * pair + 1);
    use(4 * pair + upper, low, first.scale, first.min);
    use(4 * pair + 2 + upper, high, second.scale, second.min);
  }
};
struct Q6_K : Blocks256<210, 1, 208, 4> {
  static constexpr int kBias = 32;
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int part, const Use& use) {
    const int half = part / 2, upper = part % 2;
    uint32_t low[2][4], high[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      low[0][i] = b.word(16 * half + 4 * upper + i);
      low[1][i] = b.word(16 * half + 8 + 4 * upper + i);
      high[i] = b.word(32 + 8 * half + 4 * upper + i);
    }
    const uint32_t scales[2] = {b.word(48 + 2 * half), b.word(49 + 2 * half)};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      Code code;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        code.w[i] = ((low[k % 2][i] >> (4 * (k / 2))) & 0x0f0f0f0fU) |
                    ((high[i] >> (2 * k)) & 0x03030303U) << 4;
      }
      const uint32_t s = byte_of(scales[k / 2], 2 * (k % 2) + upper);
      use(8 * half + 2 * k + upper, code, static_cast<int8_t>(s), 0);
    }
  }
};

// d * (0.5 + s) / 4 is kept as (d / 8) (2 s + 1), with / 2 as (d / 4) (2 s + 1).
STRATA_FN int odd_scale(uint32_t s) { return static_cast<int>(2 * s + 1); }

// Part of the IQ types: a group of 32 values, four octets.
template <int kBytesOf, int kEighths>
struct Grid256 : Blocks256<kBytesOf, 1, 0, 8> {
  template <class B>
  STRATA_MEMBER static float d(const B& b, int) {
    return 0.125f * kEighths * load_half(b.half(0));
  }
};

// Two octets as 16 codes; entry(i) is the grid's octet i of the group, signs(i) its sign byte.
template <class Entry, class Signs>
STRATA_FN Code signed_octets(int half, const Entry& entry, const Signs& signs) {
  Code code;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint2 values = entry(2 * half + i);
    const uint32_t s = signs(2 * half + i);
    code.w[2 * i] = negate_where(values.x, s);
    code.w[2 * i + 1] = negate_where(values.y, s >> 4);
  }
  return code;
}

struct IQ2_XXS : Grid256<66, 1> {
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int part, const Use& use) {
    const uint32_t indices = b.word(2 * part), rest = b.word(2 * part + 1);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Code code = signed_octets(
          half, [&](int l) { return octet(kIq2xxsOctets, byte_of(indices, l)); },
          [&](int l) { return sign_byte(rest >> (7 * l)); });
      use(2 * part + half, code, odd_scale(rest >> 28), 0);
    }
  }
};
struct IQ2_XS : Grid256<74, 1> {
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int part, const Use& use) {
    const uint32_t scales = byte_at(b, 16, part);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t two = b.word(2 * part + half);
      const Code code = signed_octets(
          half, [&](int l) { return octet(kIq2xsOctets, (two >> (16 * (l % 2))) & 511U); },
          [&](int l) { return sign_byte(two >> (16 * (l % 2) + 9)); });
      use(2 * part + half, code, odd_scale((scales >> (4 * half)) & 15U), 0);
    }
  }
};
struct IQ2_S : Grid256<82, 1> {
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int part, const Use& use) {
    const uint32_t low = b.word(part), signs = b.word(8 + part), high = byte_at(b, 16, part);
    const uint32_t scales = byte_at(b, 18, part);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Code code = signed_octets(
          half,
          [&](int l) {
            return octet(kIq2sOctets, byte_of(low, l) | ((high >> (2 * l)) & 3U) << 8);
          },
          [&](int l) { return byte_of(signs, l); });
      use(2 * part + half, code, odd_scale((scales >> (4 * half)) & 15U), 0);
    }
  }
};
struct IQ3_XXS : Grid256<98, 2> {
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int part, const Use& use) {
    const uint32_t rest = b.word(16 + part);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t four = b.word(2 * part + half);
      const Code code = signed_octets(
          half,
          [&](int l) {
            const int i = 2 * (l % 2);
            return uint2{kIq3xxsQuads.v[byte_of(four, i)], kIq3xxsQuads.v[byte_of(four, i + 1)]};
          },
          [&](int l) { return sign_byte(rest >> (7 * l)); });
      use(2 * part + half, code, odd_scale(rest >> 28), 0);
    }
  }
};
struct IQ3_S : Grid256<110, 8> {
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int part, const Use& use) {
    const uint32_t high = byte_at(b, 16, part), signs = b.word(18 + part);
    const uint32_t s = byte_at(b, 26, part / 2) >> (4 * (part % 2)) & 15U;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t four = b.word(2 * part + half);
      const auto quad = [&](int i) {
        return kIq3sQuads.v[byte_of(four, i) | ((high >> (4 * half + i)) & 1U) << 8];
      };
      const Code code = signed_octets(
          half,
          [&](int l) {
            return uint2{quad(2 * (l % 2)), quad(2 * (l % 2) + 1)};
          },
          [&](int l) { return byte_of(signs, l); });
      use(2 * part + half, code, odd_scale(s), 0);
    }
  }
};

// Octets of IQ1: 8 * grid + 1, or - 1 where it is shifted down.
STRATA_FN void put_shifted(Code& code, int i, uint32_t index, bool down) {
  const uint2 values = octet(kIq1sOctets, index);
  const uint32_t shift = down ? 0xffffffffU : 0x01010101U;
  code.w[2 * i] = __vadd4(values.x, shift);
  code.w[2 * i + 1] = __vadd4(values.y, shift);
}
struct IQ1_S : Grid256<50, 1> {
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int part, const Use& use) {
    const uint32_t low = b.word(part), high = b.word(8 + part / 2) >> (16 * (part % 2)) & 0xffffU;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Code code;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int l = 2 * half + i;
        put_shifted(code, i, byte_of(low, l) | ((high >> (3 * l)) & 7U) << 8, (high >> 15) != 0);
      }
      use(2 * part + half, code, odd_scale((high >> 12) & 7U), 0);
    }
  }
};
// No f16 of its own: d is spread over the upper nibbles of the last eight bytes.
struct IQ1_M : Blocks256<56, 0, 0, 8> {
  template <class B>
  STRATA_MEMBER static float d(const B& b, int) {
    uint32_t bits = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      bits |= (b.word(12 + i / 2) >> (16 * (i % 2) + 12) & 15U) << (4 * i);
    }
    return 0.125f * load_half(static_cast<uint16_t>(bits));
  }
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int part, const Use& use) {
    const uint32_t low = b.word(part);
    const uint32_t high = b.word(8 + part / 2) >> (16 * (part % 2)) & 0xffffU;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Code code;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int l = 2 * half + i;
        const uint32_t four = (high >> (4 * l)) & 15U;
        put_shifted(code, i, byte_of(low, l) | (four & 7U) << 8, (four >> 3) != 0);
      }
      const int group = 2 * part + half;
      const uint32_t scales = b.word(12 + group / 8) >> (16 * (group / 4 % 2));
      use(group, code, odd_scale((scales >> (3 * (group % 4))) & 7U), 0);
    }
  }
};

// The second half is two bits of each scale.
struct IQ4_XS : Blocks256<136, 2, 0, 8> {
  template <class B, class Use>
  STRATA_MEMBER static void each(const B& b, int part, const Use& use) {
    const uint32_t low_bits = b.word(0) >> (4 * part) & 15U;
    const uint32_t high_bits = static_cast<uint32_t>(b.half(1)) >> (2 * part) & 3U;
    const int scale = static_cast<int>(low_bits | high_bits << 4) - 32;
    Code low, high;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Looked v = look_up<kNonLinearTable>(b.word(1 + 4 * part + i));
      low.w[i] = v.low;
      high.w[i] = v.high;
    }
    use(2 * part, low, scale, 0);
    use(2 * part + 1, high, scale, 0);
  }
};

}  // namespace strata::kernels::gpu
